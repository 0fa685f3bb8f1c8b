//! Several files as one configuration, on a real disk.

use std::path::{Path, PathBuf};

use super::load_tests::Schedules;
use super::render::{Paint, render};
use super::{Config, Fault, Overrides, Severity, Sources, load};

struct Place(tempfile::TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self, name: &str) -> Result<(Config, Vec<Fault>), String> {
        let path = self.path(name);
        let environment = |name: &str| (name == "JOBS").then(|| "jobs".to_owned());
        let shown = |faults: &[Fault], sources: &Sources| {
            let folder = format!("{}/", self.0.path().display());
            render(faults, sources, Paint::Plain).replace(&folder, "")
        };
        let sources = Sources::read(Path::new(&path), &environment)
            .map_err(|faults| shown(&faults, &Sources::default()))?;
        load(&sources, &environment, &Overrides::default(), &Schedules)
            .map_err(|faults| shown(&faults, &sources))
    }

    fn names(&self, name: &str) -> Vec<String> {
        let (config, faults) = self.load(name).unwrap_or_else(|text| panic!("{text}"));
        assert_eq!(faults, []);
        config.jobs.into_iter().map(|job| job.name).collect()
    }

    #[track_caller]
    fn refuses(&self, name: &str, parts: &[&str]) {
        let text = self.load(name).expect_err("a refusal");
        for part in parts {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}

fn jobs(names: &[&str]) -> String {
    let jobs: Vec<String> = names
        .iter()
        .map(|name| format!("- {{name: {name}, command: c}}\n"))
        .collect();
    format!("jobs:\n{}", jobs.concat())
}

#[test]
fn files_and_globs_are_read_where_they_are_named() {
    let place = Place::new(&[
        (
            "ductor.yaml",
            &format!("include: [sub/more.yaml, '${{JOBS}}/*.yaml']\n{}", jobs(&["own"])),
        ),
        (
            "sub/more.yaml",
            &format!("include: deeper.yaml\n{}", jobs(&["more"])),
        ),
        ("sub/deeper.yaml", &jobs(&["deeper"])),
        ("jobs/b.yaml", &jobs(&["b"])),
        ("jobs/a.yaml", &jobs(&["a"])),
        ("jobs/a.txt", "not: read"),
    ]);
    assert_eq!(place.names("ductor.yaml"), ["own", "more", "deeper", "a", "b"]);
}

#[test]
fn a_file_is_read_once_and_a_glob_may_find_its_own_file() {
    let place = Place::new(&[
        ("ductor.yaml", "include: ['*.yaml', a.yaml, ./b.yaml]"),
        ("a.yaml", &format!("include: b.yaml\n{}", jobs(&["a"]))),
        ("b.yaml", &jobs(&["b"])),
    ]);
    assert_eq!(place.names("ductor.yaml"), ["a", "b"]);
}

#[test]
fn a_directory_is_its_files_in_name_order() {
    let place = Place::new(&[
        ("d/b.yaml", &jobs(&["b"])),
        (
            "d/a.yaml",
            &format!("include: ../other.yaml\npools: {{}}\n{}", jobs(&["a"])),
        ),
        ("d/c.yml", "no: 1"),
        ("d/e.yaml/f.yaml", "no: 1"),
        ("d/aa.crontab", "* * * * * x"),
        ("other.yaml", &jobs(&["other"])),
    ]);
    let (config, _) = place.load("d").unwrap();
    let names: Vec<&str> = config.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "other", "b", "aa-1"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refuses("empty", &["no `*.yaml` or `*.crontab` file", "ductor init"]);
}

#[test]
fn defaults_are_of_their_own_file() {
    let place = Place::new(&[
        (
            "ductor.yaml",
            &format!(
                "include: a.yaml\ndefaults: {{killTimeout: 7}}\n{}",
                jobs(&["own"])
            ),
        ),
        ("a.yaml", &jobs(&["other"])),
    ]);
    let (config, _) = place.load("ductor.yaml").unwrap();
    let times: Vec<u64> = config.jobs.iter().map(|job| job.launch.kill_timeout_ms).collect();
    assert_eq!(times, [7_000, 30_000]);
}

#[test]
fn names_and_sections_are_unique_over_all_files() {
    let place = Place::new(&[
        (
            "ductor.yaml",
            &format!(
                "include: a.yaml\npools: {{p: {{slots: 1}}}}\nserver: {{}}\n{}",
                jobs(&["j"])
            ),
        ),
        (
            "a.yaml",
            &format!("pools: {{p: {{slots: 2}}}}\nserver: {{}}\n{}", jobs(&["j"])),
        ),
    ]);
    place.refuses(
        "ductor.yaml",
        &[
            "duplicate pool 'p'",
            "a.yaml:1:9",
            "ductor.yaml:2:9",
            "`server` stands in two files",
            "a.yaml:2:1",
            "ductor.yaml:3:1",
            "duplicate job 'j'",
            "a.yaml:4:10",
            "ductor.yaml:5:10",
        ],
    );
}

#[test]
fn what_cannot_be_followed_is_told_where_it_is_named_with_all_else() {
    let place = Place::new(&[
        (
            "ductor.yaml",
            "include:\n  - none.yaml\n  - none/*.yaml\n  - sub\n  - ''\n  - '~/x.yaml'\n  - '${UNSET}'\n  - [x]\n  - big.yaml\n  - '[a'\ncrontabs:\n  - none.crontab\n  - {path: also-none, user: yes}\n  - {user: true}\n  - '${X}/t'\njob: []\n",
        ),
        ("sub/x.yaml", ""),
        ("big.yaml", &" ".repeat(super::FILE_BYTES_MAX + 1)),
    ]);
    place.refuses(
        "ductor.yaml",
        &[
            "ductor.yaml:2:5",
            "`none.yaml`: cannot read the configuration file: it does not exist",
            "ductor.yaml:3:5",
            "cannot list `none`",
            "`sub` is a directory",
            "name its files: sub/*.yaml",
            "the name of a file is empty",
            "cannot begin with `~`",
            "ductor.yaml:7:6",
            "variable `UNSET` is not set",
            "ductor.yaml:8:5",
            "4 MiB",
            "`[` has no closing `]`",
            "ductor.yaml:12:5",
            "ductor.yaml:13:29",
            "`user` must be true or false",
            "needs a `path`",
            "variables are not replaced under `crontabs`",
            "unknown key `job`",
        ],
    );
}

#[test]
fn circles_are_told() {
    let place = Place::new(&[
        ("ductor.yaml", "include: sub/a.yaml"),
        ("sub/a.yaml", "include: [../b.yaml]"),
        ("b.yaml", "\ninclude: sub/a.yaml"),
        ("own.yaml", "include: ./own.yaml"),
    ]);
    place.refuses(
        "ductor.yaml",
        &["sub/a.yaml -> sub/../b.yaml -> sub/a.yaml", "b.yaml:2:10"],
    );
    place.refuses("own.yaml", &["own.yaml` includes itself", "own.yaml:1:10"]);
}

#[test]
fn depth_and_number_are_bounded() {
    let place = Place::new(&[]);
    for index in 0..20 {
        place.write(&format!("{index}.yaml"), &format!("include: {}.yaml", index + 1));
    }
    place.refuses("0.yaml", &["more than 16 deep", "15.yaml:1:10"]);
    for index in 0..super::FILES_MAX {
        place.write(&format!("many/{index}.yaml"), "");
    }
    place.write("many.yaml", "include: many/*.yaml");
    place.refuses("many.yaml", &["at most 1000 files"]);
    place.write("many/more.yaml", "");
    place.refuses("many", &["at most 1000 files"]);
}

#[test]
fn a_glob_without_files_is_a_note() {
    let place = Place::new(&[("ductor.yaml", "include: ['*.none']")]);
    let (_, faults) = place.load("ductor.yaml").unwrap();
    assert_eq!(faults[0].severity, Severity::Note);
    assert_eq!(faults[0].message, "`*.none` matches no file");
}

#[test]
fn crontabs_come_by_name_by_key_and_by_include() {
    let place = Place::new(&[
        (
            "ductor.yaml",
            "include: ['*.crontab', tab.crontab]\ncrontabs:\n  - cron.d/*\n  - {path: root.crontab, user: true}\n",
        ),
        ("root.crontab", "* * * * * root a"),
        ("tab.crontab", "* * * * * a"),
        ("cron.d/web", "@daily a"),
        ("cron.d/.placeholder", "nothing good"),
    ]);
    let (config, _) = place.load("ductor.yaml").unwrap();
    let users: Vec<(&str, Option<&str>)> = config
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.launch.user.as_deref()))
        .collect();
    assert_eq!(
        users,
        [("root-1", Some("root")), ("tab-1", None), ("web-1", None)]
    );
    assert_eq!(config.crontabs.len(), 3);
    assert_eq!(place.names_of_table("tab.crontab"), ["tab-1"]);
}

impl Place {
    /// A table may be the whole configuration.
    fn names_of_table(&self, name: &str) -> Vec<String> {
        let (config, _) = self.load(name).unwrap_or_else(|text| panic!("{text}"));
        assert!(config.state.path.ends_with("state"));
        config.jobs.into_iter().map(|job| job.name).collect()
    }
}

#[test]
fn a_text_in_memory_follows_nothing_in_silence() {
    for (text, at) in [("include: a.yaml", "include"), ("crontabs: [a]", "crontabs")] {
        let sources = Sources::in_memory(&[("a.yaml", text)]);
        let faults = load(&sources, &|_| None, &Overrides::default(), &Schedules).unwrap_err();
        assert!(faults[0].message.starts_with(&format!("`{at}` is followed")));
    }
    let place = Place::new(&[("ductor.yaml", "\"incl\\u0075de\": a.yaml")]);
    place.refuses("ductor.yaml", &["spelt without escapes"]);
}
