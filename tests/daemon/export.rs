//! The main job: the export example, with a shell script in place of the Python one.

use serde_json::json;

use super::support::{Builder, Place};
use super::ways::{ended, entries, folder, lines, run_id, slots, start};

fn example() -> Place {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/config/examples/export/ductor.yaml"
    ));
    let place = Place::new("jobs: []\n");
    let script = "echo begin $DUCTOR_RUN_ID >> marks; sleep 1; mkdir -p exported; echo row > exported/latest.csv; echo end >> marks";
    let text = text
        .unwrap()
        .replace("command: python3 export.py", &format!("command: {script}"));
    assert!(text.contains("poolSlots: 2") && text.contains(script), "{text}");
    place.write_config(&text);
    place
}

#[test]
fn never_more_than_two_exports_at_once() {
    let place = example();
    let daemon = Builder::at(&place).start();
    let ids: Vec<String> = (0..5).map(|_| run_id(&start(&daemon, "export"))).collect();
    let mut most = 0;
    daemon.wait("all exports", || {
        let shown = slots(&daemon, "warehouse");
        let used = shown["used"].as_u64().unwrap();
        assert!(matches!(used, 0 | 2 | 4), "{shown}");
        most = most.max(entries(&daemon, "warehouse", "running").len());
        (shown["queued"] == 0 && used == 0).then_some(())
    });
    assert_eq!(most, 2);
    for id in &ids {
        assert_eq!(ended(&daemon, id)["state"], "succeeded");
    }
    let marks = lines(&place, "marks");
    let begun: Vec<&str> = marks
        .iter()
        .filter_map(|line| line.strip_prefix("begin "))
        .collect();
    let mut first_two: Vec<&str> = begun[..2].to_vec();
    first_two.sort_unstable();
    assert_eq!(
        first_two,
        [ids[0].as_str(), ids[1].as_str()],
        "in the order of time: {marks:?}"
    );
    assert!(folder(&place).len() > 1);
}

#[test]
fn lower_priority_waits_behind_and_a_cancel_works() {
    let place = example();
    let daemon = Builder::at(&place).start();
    for _ in 0..2 {
        start(&daemon, "export");
    }
    daemon.wait("two exports", || {
        (slots(&daemon, "warehouse")["used"] == 4).then_some(())
    });
    let light = start(&daemon, "vacuum");
    let wide = start(&daemon, "export");
    let waiting = entries(&daemon, "warehouse", "queued");
    assert_eq!(waiting.len(), 2);
    assert_eq!(
        (waiting[0]["id"].as_str(), waiting[0]["position"].as_u64()),
        (wide["queueId"].as_str(), Some(1))
    );
    assert_eq!(waiting[0]["waitingReason"], "Needs 2 slot(s); 0 available");
    assert_eq!(
        waiting[1]["waitingReason"],
        "Waiting behind higher-priority or earlier work"
    );
    let key = light["queueId"].as_str().unwrap();
    daemon
        .post(&format!("/pools/warehouse/queue/{key}/cancel"), &json!({}))
        .expect_status(200);
    let shown = ended(&daemon, &run_id(&light));
    assert_eq!(
        (shown["state"].as_str(), shown["reason"].as_str()),
        (Some("skipped"), Some("cancelled by operator"))
    );
    assert_eq!(ended(&daemon, &run_id(&wide))["state"], "succeeded");
}
