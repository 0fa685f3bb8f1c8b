//! The rules of the code base that no lint knows, over the text of the repository. Each checker is a pure function over one
//! file and has a self-test that feeds it bad samples; each rule fails with every violation as `file:line: why`.

#[path = "tidy/floors.rs"]
mod floors;
#[path = "tidy/homes.rs"]
mod homes;
#[path = "tidy/lexer.rs"]
mod lexer;
#[path = "tidy/promises.rs"]
mod promises;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/text.rs"]
mod text;

use sources::{Source, hold, root, rust_files, tracked_files};

fn all_rust_files() -> Vec<Source> {
    ["src", "tests", "benches"]
        .into_iter()
        .flat_map(rust_files)
        .collect()
}

#[test]
fn imports_go_down_the_floors() {
    hold(&rust_files("src"), floors::check);
}

#[test]
fn a_crate_is_named_in_its_home() {
    hold(&rust_files("src"), homes::check_homes);
}

#[test]
fn the_domain_is_pure() {
    hold(&rust_files("src"), homes::check_domain);
}

#[test]
fn banned_crates_are_not_in_the_lock_file() {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock is committed");
    hold(&[Source::new("Cargo.lock", &text)], homes::check_lock);
}

#[test]
fn files_have_a_head_and_an_end() {
    hold(&rust_files("src"), shape::check_file);
}

#[test]
fn files_are_named_for_what_they_hold() {
    hold(&all_rust_files(), shape::check_names);
}

#[test]
fn functions_are_short() {
    hold(&all_rust_files(), shape::check_functions);
}

#[test]
fn nothing_is_left_over() {
    hold(&all_rust_files(), shape::check_left_over);
}

#[test]
fn mod_files_hold_no_logic() {
    hold(&all_rust_files(), shape::check_mod_file);
}

#[test]
fn the_bare_word_pool_stays_at_the_border() {
    hold(&rust_files("src"), shape::check_pool_word);
}

#[test]
fn tests_do_not_sleep() {
    hold(&rust_files("tests"), shape::check_no_sleep);
}

#[test]
fn no_file_names_one_machine() {
    hold(&tracked_files(), text::check_machine_paths);
}

#[test]
fn promises_are_held_by_tests() {
    let tests = promises::tests_of(&all_rust_files());
    let page = |file: &Source| file.path == "docs/slot-pool-promises.md";
    let pages: Vec<Source> = tracked_files().into_iter().filter(page).collect();
    assert_eq!(pages.len(), 1, "the table of promises is in the repository");
    hold(&pages, |page| promises::check(page, &tests));
}

/// An empty list would let every rule above pass.
#[test]
fn the_rules_see_the_files() {
    let sees = |files: &[Source], path: &str| assert!(files.iter().any(|file| file.path == path), "{path}");
    sees(&rust_files("src"), "src/main.rs");
    sees(&rust_files("tests"), "tests/tidy/lexer.rs");
    sees(&tracked_files(), "Cargo.toml");
}
