//! Schedules in plain words.

use super::{schedule_in, schedule_with_seconds};

#[test]
fn schedules_in_words() {
    for (text, words) in [
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("7-59/15 * * * *", "every 15 minutes from minute 7"),
        (
            "*/7 * * * *",
            "at minutes 0, 7, 14, 21, 28, 35, 42, 49, 56 of each hour",
        ),
        ("0 * * * *", "every hour"),
        ("13 * * * *", "every hour at minute 13"),
        ("08,38 * * * *", "every 30 minutes from minute 8"),
        ("30 2 * * 1-5", "at 02:30 on Mon-Fri"),
        ("30 2,3 * * *", "at 02:30 and 03:30"),
        ("30 */2 * * *", "at minute 30 of every 2 hours"),
        ("*/5 8-18 * * 1-5", "every 5 minutes in hours 8-18 on Mon-Fri"),
        ("* 2 * * *", "every minute in hours 2"),
        ("0 8 * * sat-sun", "at 08:00 on Sat, Sun"),
        ("0 0 * * 0-5", "at 00:00 on Mon-Fri, Sun"),
        ("0 0 1 1 *", "at 00:00 on day 1 in Jan"),
        ("0 0 13 * 5", "at 00:00 on day 13 or Fri"),
        ("0 0 13 * +5", "at 00:00 on day 13 if it is Fri"),
        (
            "0 0 L-1,LW,15W 2-4 *",
            "at 00:00 on the day before the last, the last weekday and the weekday nearest to the 15th in Feb-Apr",
        ),
        ("0 0 L * *", "at 00:00 on the last day"),
        ("0 0 * * 5L", "at 00:00 on the last Fri"),
        ("0 0 * * 1#1,5#3", "at 00:00 on the 1st Mon and the 3rd Fri"),
        ("@daily", "at 00:00"),
        ("@weekly", "at 00:00 on Sun"),
        ("@every 90s", "every 1m30s"),
        ("@every 60s", "every minute"),
        ("@every 1d", "every day at 00:00 UTC"),
        ("@reboot", "once after each boot"),
    ] {
        assert_eq!(schedule_in("UTC", text).describe(), words, "{text}");
    }
    for (text, words) in [
        ("* * * * * *", "every second"),
        ("*/15 * * * * *", "every 15 seconds"),
        ("*/15 0 * * * *", "every 15 seconds in minutes 0"),
        ("30 * * * * *", "every minute at second 30"),
        ("5 0 8 * * *", "at 08:00:05"),
    ] {
        assert_eq!(schedule_with_seconds("UTC", text).describe(), words, "{text}");
    }
}
