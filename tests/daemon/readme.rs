//! The README is a promise: every `ductor` command in it is run, on the configuration that it shows.

use super::support::{Builder, Place, ductor};
use super::ways::{ended, run_id, start};

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap()
}

/// Text between a fence of that language and its end.
fn block(text: &str, language: &str) -> String {
    let start = text
        .find(&format!("```{language}\n"))
        .expect("a block of that language");
    let body = &text[start + language.len() + 4..];
    body[..body.find("```").unwrap()].to_owned()
}

/// Every command line that begins with `ductor`, in blocks and in running text, in order.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut language: Option<&str> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("```") {
            language = if language.is_some() { None } else { Some(rest) };
            continue;
        }
        let said = line.replace("cargo run --release -- ", "ductor ");
        match language {
            Some("sh") if said.starts_with("ductor ") => found.push(said),
            Some(_) => {}
            None => {
                let parts = line.split('`').skip(1).step_by(2);
                found.extend(
                    parts
                        .filter(|part| part.starts_with("ductor "))
                        .map(str::to_owned),
                );
            }
        }
    }
    found
}

#[test]
fn every_command_of_the_readme_works() {
    let text = readme();
    let place = Place::new(&block(&text, "yaml"));
    let mut daemon = Builder::at(&place).start();
    let run = run_id(&start(&daemon, "export"));
    let all = commands(&text);
    assert!(all.len() >= 9, "{all:?}");
    let crontab = place.write("old.crontab", "CRON_TZ=UTC\n30 2 * * * echo old\n");
    let converted = place.folder().join("converted");
    let torture = place.folder().join("torture");
    let mut after_the_end = Vec::new();
    for line in &all {
        let words: Vec<&str> = line
            .split_whitespace()
            .skip(1)
            .map(|word| match word {
                "ID" => run.as_str(),
                "FILE" => crontab.to_str().unwrap(),
                "DIR" => torture.to_str().unwrap(),
                // One round says as much as the minutes that a user has for it.
                "5m" if line.contains("torture") => "1s",
                _ => word,
            })
            .collect();
        match words[0] {
            "serve" => continue,
            "doctor" => after_the_end.push(words.clone()),
            _ => {}
        }
        if words[0] == "doctor" {
            continue;
        }
        let config = place.config();
        let mut words = words;
        if words.starts_with(&["job", "run"]) {
            words.extend(["--config", config.to_str().unwrap()]);
        }
        if words[0] == "init" {
            words.push(converted.to_str().unwrap());
        }
        let answered = daemon.cli(&words);
        assert_eq!(answered.status, 0, "{line}: {answered:?}");
    }
    assert_eq!(daemon.term(), Some(0));
    for words in after_the_end {
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--config".to_owned(), place.config().display().to_string()]);
        words.extend(["--state-dir".to_owned(), place.state().display().to_string()]);
        let answered = ductor(&words);
        assert_eq!(answered.status, 0, "{words:?}: {answered:?}");
    }
}

#[test]
fn the_mistake_of_the_readme_is_answered_as_shown() {
    let text = readme();
    let shown = block(&text, "text");
    let place = Place::new("pools:\n  warehouse:\n    slots: 4\n\n\n    maxQeued: 100\n");
    let answered = ductor(&[
        "serve",
        "--config",
        place.config().to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(answered.status, 2, "{answered:?}");
    for line in shown.lines().filter(|line| !line.contains("-->")) {
        assert!(
            answered.stderr.contains(line.trim_end()),
            "{line:?} is not in {}",
            answered.stderr
        );
    }
}

#[test]
fn the_reference_configuration_is_good_and_loads() {
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/config/ductor.yaml");
    let answered = ductor(&["check", "--strict", reference]);
    assert_eq!(answered.status, 0, "{answered:?}");
    let place = Place::new(&std::fs::read_to_string(reference).unwrap());
    let daemon = Builder::at(&place).start();
    assert_eq!(daemon.get("/jobs").status, 200);
    let answered = daemon.cli(&["job", "start", "demo-keys", "--wait"]);
    assert_eq!(answered.status, 0, "{answered:?}");
}

#[test]
fn the_first_workflow_of_the_readme_is_posted_by_curl_and_ends() {
    let text = readme();
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    place.write("hello.json", &block(&text, "json"));
    let begin = text.find("api=http").expect("the commands");
    let script = &text[begin..begin + text[begin..].find("```").unwrap()];
    let script = script.replace("http://127.0.0.1:8470", daemon.url());
    let output = std::process::Command::new("/bin/sh")
        .args(["-ec", &script])
        .current_dir(place.folder())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let id = said
        .rfind("run_")
        .and_then(|at| said.get(at..at + 30))
        .unwrap_or_default();
    assert_eq!(ended(&daemon, id)["state"], "succeeded", "{said}");
}
