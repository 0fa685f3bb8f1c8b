//! `ductor init` as a new user calls it, and that what it writes is good.

mod support;

use std::path::Path;

use support::{Answered, ductor, ductor_with_input};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).expect("a file that was written")
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.path().join(name), text).expect("write a file");
        self.path(name)
    }
}

/// As a build would look at it.
fn check(path: &str) -> Answered {
    ductor(&["check", "--strict", path]).expect_status(0)
}

#[test]
fn every_template_is_good_and_is_never_written_over() {
    for template in ["cron", "slots", "dag"] {
        let folder = Folder::new();
        let place = folder.path("new/place");
        let answered = ductor(&["init", &place, "--template", template]).expect_status(0);
        let written = format!("{place}/ductor.yaml");
        assert!(
            answered.stdout.starts_with(&format!("wrote {written}\n")),
            "{answered:?}"
        );
        assert!(
            answered
                .stdout
                .contains(&format!("ductor serve --config {written}")),
            "{answered:?}"
        );
        check(&written);
        let text = folder.read("new/place/ductor.yaml");
        let again = ductor(&["init", &place]).expect_status(5);
        assert!(again.stderr.contains("is there already"), "{again:?}");
        assert_eq!(folder.read("new/place/ductor.yaml"), text);
    }
    // What the program cannot do yet has no template.
    ductor(&["init", "--template", "routing"]).expect_status(2);
}

#[test]
fn a_crontab_becomes_yaml() {
    let folder = Folder::new();
    let table = include_str!("field/thirty.crontab");
    let file = folder.write("box.crontab", table);
    let (place, piped) = (folder.path("a"), folder.path("b"));
    let answered = ductor(&["init", &place, "--from-crontab", &file]).expect_status(0);
    assert!(
        answered.stdout.contains("take the 18 lines out of the crontab"),
        "{answered:?}"
    );
    assert!(answered.stderr.contains("lint/crontab-mailto"), "{answered:?}");
    ductor(&["check", &format!("{place}/ductor.yaml")]).expect_status(0);
    let line = ["init", &piped, "--from-crontab", "-", "--json"];
    let answered = ductor_with_input(&line, table).expect_status(0).json();
    assert_eq!(answered["data"]["jobs"], 18);
    let text = folder.read("b/ductor.yaml");
    assert!(
        text.contains("- name: crontab-9\n    schedule: \"*/10 * * * *\"\n"),
        "{text}"
    );
    assert!(folder.read("a/ductor.yaml").contains("- name: box-9\n"));
}

#[test]
fn a_table_of_the_system_keeps_its_users() {
    let folder = Folder::new();
    let file = folder.write("tab", "@daily postgres vacuum\n0 5 * * * root clean\n");
    let place = folder.path("a");
    ductor(&["init", &place, "--from-crontab", &file, "--user-column"]).expect_status(0);
    let text = folder.read("a/ductor.yaml");
    assert!(text.contains("command: vacuum\n    user: postgres\n"), "{text}");
    ductor(&["init", &place, "--user-column"]).expect_status(2);
}

#[test]
fn a_faulty_crontab_is_told_whole_and_nothing_is_written() {
    let folder = Folder::new();
    let file = folder.write("mistakes.crontab", include_str!("field/mistakes.crontab"));
    let place = folder.path("a");
    let answered = ductor(&["init", &place, "--from-crontab", &file]).expect_status(2);
    for line in ["mistakes.crontab:2:1", "mistakes.crontab:24:1"] {
        assert!(answered.stderr.contains(line), "{answered:?}");
    }
    assert!(!Path::new(&place).exists());
    let answered = ductor(&["init", &place, "--from-crontab", &folder.path("none")]).expect_status(2);
    assert!(answered.stderr.contains("it does not exist"), "{answered:?}");
}

#[test]
fn a_file_of_cronstable_is_kept_and_included() {
    let folder = Folder::new();
    let shop = include_str!("field/web-shop.cronstable.yaml");
    let file = folder.write("shop.yaml", shop);
    let place = folder.path("a");
    let answered = ductor(&["init", &place, "--from-cronstable", &file]).expect_status(0);
    assert!(
        answered.stdout.contains("a/shop.cronstable.yaml\n"),
        "{answered:?}"
    );
    assert_eq!(folder.read("a/shop.cronstable.yaml"), shop);
    let checked = ductor(&["check", &format!("{place}/ductor.yaml")]).expect_status(0);
    assert!(checked.stdout.contains("5 jobs"), "{checked:?}");
    assert!(checked.stdout.contains("lint/cronstable-days"), "{checked:?}");
    // In the folder itself, under a name that says what it is, it is only included.
    folder.write("own.yacron.yaml", "web: {}\njobs: [{name: j, command: c}]\n");
    let line = [
        "init",
        &folder.path(""),
        "--from-cronstable",
        &folder.path("own.yacron.yaml"),
    ];
    let answered = ductor(&line).expect_status(0);
    assert_eq!(answered.stdout.matches("wrote ").count(), 1, "{answered:?}");
    let strict = ductor(&["check", "--strict", &folder.path("ductor.yaml")]).expect_status(2);
    assert!(strict.stdout.contains("own.yacron.yaml:1:1"), "{strict:?}");
    ductor(&["check", &folder.path("ductor.yaml")]).expect_status(0);
}
