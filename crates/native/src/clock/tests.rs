//! Results of `get_time`, case by case, at one moment: Sunday, 15 November 2026, 03:34:56 UTC.

use super::*;
use proptest::prelude::*;

fn now() -> Zoned {
    "2026-11-15T03:34:56[UTC]".parse().unwrap()
}

fn answer(zone: &str, offset: &str, at: &str) -> Result<TimeAnswer, LocalizedText> {
    let input = |text: &str| Some(text.to_owned());
    time_at(&now(), &TimeRequest { zone: input(zone), offset: input(offset), at: input(at), until: None })
}

fn ask(zone: &str, offset: &str, at: &str) -> Result<Zoned, LocalizedText> {
    answer(zone, offset, at).map(|answer| answer.moment)
}

fn render(answer: Result<Zoned, LocalizedText>) -> String {
    match answer {
        Ok(moment) => format!("{} {}", moment.strftime("%Y-%m-%d %H:%M:%S %:z"), zone::name(&moment)),
        Err(message) => format!("error: {message}"),
    }
}

#[track_caller]
fn check(answer: fn(&str) -> String, cases: &[(&str, &str)]) {
    let wrong: Vec<_> = cases
        .iter()
        .map(|(input, expect)| (input, expect, answer(input)))
        .filter(|(_, expect, actual)| actual != *expect)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn resolves_zone_aliases() {
    fn zone_of(name: &str) -> String {
        match ask(name, "", "") {
            Ok(moment) => zone::name(&moment),
            Err(message) => format!("error: {message}"),
        }
    }
    check(
        zone_of,
        &[
            ("", "UTC"),
            ("Asia/Tokyo", "Asia/Tokyo"),
            ("asia/tokyo", "Asia/Tokyo"),
            ("america/new york", "America/New_York"),
            ("Tokyo", "Asia/Tokyo"),
            ("TOKYO", "Asia/Tokyo"),
            ("New York", "America/New_York"),
            ("new_york", "America/New_York"),
            ("北京", "Asia/Shanghai"),
            ("北京时间", "Asia/Shanghai"),
            ("北京市", "Asia/Shanghai"),
            ("Beijing time", "Asia/Shanghai"),
            ("旧金山", "America/Los_Angeles"),
            ("São Paulo", "America/Sao_Paulo"),
            ("sao paulo", "America/Sao_Paulo"),
            ("圣保罗", "America/Sao_Paulo"),
            ("Zürich", "Europe/Zurich"),
            ("St. John's", "America/St_Johns"),
            ("慕尼黑", "Europe/Berlin"),
            ("Munich, Germany", "Europe/Berlin"),
            ("Austin, TX", "America/Chicago"),
            ("Portland, Oregon", "America/Los_Angeles"),
            ("San Jose, Costa Rica", "America/Costa_Rica"),
            ("Birmingham, UK", "Europe/London"),
            ("美国纽约", "America/New_York"),
            ("日本东京", "Asia/Tokyo"),
            ("Japan", "Asia/Tokyo"),
            ("德国", "Europe/Berlin"),
            ("UK", "Europe/London"),
            ("China", "Asia/Shanghai"),
            ("新加坡", "Asia/Singapore"),
            ("Kiev", "Europe/Kyiv"),
            ("UTC", "UTC"),
            ("GMT", "UTC"),
            ("JST", "Asia/Tokyo"),
            ("CET", "CET"),
            ("東京", "Asia/Tokyo"),
            ("東京時間", "Asia/Tokyo"),
            ("紐約", "America/New_York"),
            ("雪梨", "Australia/Sydney"),
            ("廣州市", "Asia/Shanghai"),
            ("橫濱", "Asia/Tokyo"),
            ("横浜", "Asia/Tokyo"),
            ("ロンドン", "Europe/London"),
            ("臺北", "Asia/Taipei"),
            ("德國", "Europe/Berlin"),
            ("火奴鲁鲁", "Pacific/Honolulu"),
            ("美国东部时间", "America/New_York"),
            ("Eastern Time", "America/New_York"),
            ("US Pacific Standard Time", "America/Los_Angeles"),
            ("Mountain Daylight Time", "America/Denver"),
            ("美西时间", "America/Los_Angeles"),
            ("Central", "America/Chicago"),
            ("PST", "America/Los_Angeles"),
            ("est", "America/New_York"),
            ("中国标准时间", "Asia/Shanghai"),
            ("東八區", "UTC+08:00"),
            ("ＵＴＣ＋８", "UTC+08:00"),
            ("UTC+8", "UTC+08:00"),
            ("utc +8", "UTC+08:00"),
            ("GMT-3:30", "UTC-03:30"),
            ("+05:30", "UTC+05:30"),
            ("+0545", "UTC+05:45"),
            ("-3", "UTC-03:00"),
            ("东八区", "UTC+08:00"),
            ("西五区", "UTC-05:00"),
            ("UTC+25", "error: `utc+25` is no offset: they run from -12:00 to +14:00"),
            (
                "Portland",
                "error: `Portland` is ambiguous: name the zone, one of `America/Los_Angeles`, `America/New_York`",
            ),
            (
                "CST",
                "error: `CST` is ambiguous: name the zone, one of `America/Chicago`, `Asia/Shanghai`, `America/Havana`",
            ),
            ("Tokio", "error: the time zone of `Tokio` is not known: did you mean `Tokyo`?"),
            ("Bejing", "error: the time zone of `Bejing` is not known: did you mean `Beijing`?"),
            ("旧金", "error: the time zone of `旧金` is not known: did you mean `旧金山`?"),
            ("Paris, TX", "error: the time zone of `Paris, TX` is not known: did you mean `Paris`?"),
        ],
    );
    assert!(zone_of("United States").contains("`America/New_York`, `America/Chicago`"));
    assert!(
        zone_of("Xyzzyville")
            .starts_with("error: the time zone of `Xyzzyville` is not known: give an IANA name")
    );
}

#[test]
fn parses_offsets_in_both_languages() {
    fn shifted(offset: &str) -> String {
        match ask("", offset, "") {
            Ok(moment) => moment.strftime("%m-%d %H:%M:%S").to_string(),
            Err(message) => format!("error: {message}"),
        }
    }
    check(
        shifted,
        &[
            ("100 days from today", "02-23 03:34:56"),
            ("90 days after", "02-13 03:34:56"),
            ("two weeks before today", "11-01 03:34:56"),
            ("再过45天", "12-30 03:34:56"),
            ("从今天起100天后", "02-23 03:34:56"),
            ("+3h", "11-15 06:34:56"),
            ("-90m", "11-15 02:04:56"),
            ("－90m", "11-15 02:04:56"),
            ("in 2 days", "11-17 03:34:56"),
            ("2 days from now", "11-17 03:34:56"),
            ("3 hours ago", "11-15 00:34:56"),
            ("an hour ago", "11-15 02:34:56"),
            ("two weeks later", "11-29 03:34:56"),
            ("1 hour and 30 minutes ago", "11-15 02:04:56"),
            ("half an hour ago", "11-15 03:04:56"),
            ("1h30m", "11-15 05:04:56"),
            ("1.5 hours", "11-15 05:04:56"),
            ("3 months", "02-15 03:34:56"),
            ("P1DT2H", "11-16 05:34:56"),
            ("-PT90M", "11-15 02:04:56"),
            ("tomorrow", "11-16 03:34:56"),
            ("Yesterday", "11-14 03:34:56"),
            ("next month", "12-15 03:34:56"),
            ("now", "11-15 03:34:56"),
            ("2天后", "11-17 03:34:56"),
            ("三小时前", "11-15 00:34:56"),
            ("３小时前", "11-15 00:34:56"),
            ("半小时后", "11-15 04:04:56"),
            ("一个半小时以后", "11-15 05:04:56"),
            ("两天半之前", "11-12 15:34:56"),
            ("1小时30分钟后", "11-15 05:04:56"),
            ("3个月后", "02-15 03:34:56"),
            ("半年后", "05-15 03:34:56"),
            ("两周前", "11-01 03:34:56"),
            ("十五分钟后", "11-15 03:49:56"),
            ("一刻钟后", "11-15 03:49:56"),
            ("再过两小时", "11-15 05:34:56"),
            ("昨天", "11-14 03:34:56"),
            ("大后天", "11-18 03:34:56"),
            ("兩個小時後", "11-15 05:34:56"),
            ("+1mo", "12-15 03:34:56"),
            ("P1M", "12-15 03:34:56"),
            ("PT1M", "11-15 03:35:56"),
            ("next monday", "11-16 03:34:56"),
            ("next sunday", "11-22 03:34:56"),
            ("last fri", "11-13 03:34:56"),
            ("下周一", "11-16 03:34:56"),
            ("上星期天", "11-08 03:34:56"),
            ("+1M", "error: `+1M` has two readings: write `+1min` for minutes, `+1mo` for months"),
            (
                "+99999999 days",
                "error: `+99999999 days` is too far: it leads out of the calendar, which ends with the year 9999",
            ),
            (
                "9000 years",
                "error: `9000 years` is too far: it leads out of the calendar, which ends with the year 9999",
            ),
            (
                "99999999999999999 天后",
                "error: `99999999999999999 天后` is too far: it leads out of the calendar, which ends with the year 9999",
            ),
        ],
    );
    for nonsense in ["soon", "三", "后", "个", "3 parsecs", "++3h", "-", "半"] {
        let actual = shifted(nonsense);
        assert!(actual.starts_with(&format!("error: `{nonsense}` is no offset")), "{nonsense}: {actual}");
    }
}

#[test]
fn converts_given_times() {
    check(
        |at| render(ask("Tokyo", "", at)),
        &[
            ("2026-03-29T01:30", "2026-03-29 01:30:00 +09:00 Asia/Tokyo"),
            ("2026-03-29 01:30", "2026-03-29 01:30:00 +09:00 Asia/Tokyo"),
            ("2026/03/29 01:30", "2026-03-29 01:30:00 +09:00 Asia/Tokyo"),
            ("2026-03-29", "2026-03-29 00:00:00 +09:00 Asia/Tokyo"),
            ("2026-03-29T01:30Z", "2026-03-29 10:30:00 +09:00 Asia/Tokyo"),
            ("2026-03-29T01:30+02:00", "2026-03-29 08:30:00 +09:00 Asia/Tokyo"),
            ("2026-03-29T01:30[Europe/Berlin]", "2026-03-29 09:30:00 +09:00 Asia/Tokyo"),
            ("2026-03-27 15:00 New York", "2026-03-28 04:00:00 +09:00 Asia/Tokyo"),
            ("2026-03-27 15:00 北京", "2026-03-27 16:00:00 +09:00 Asia/Tokyo"),
            ("15:00 UTC", "2026-11-16 00:00:00 +09:00 Asia/Tokyo"),
            ("15:00", "2026-11-15 15:00:00 +09:00 Asia/Tokyo"),
            ("1774748400", "2026-03-29 10:40:00 +09:00 Asia/Tokyo"),
            ("@0", "1970-01-01 09:00:00 +09:00 Asia/Tokyo"),
            ("now", "2026-11-15 12:34:56 +09:00 Asia/Tokyo"),
            ("15:30", "2026-11-15 15:30:00 +09:00 Asia/Tokyo"),
            ("9:05", "2026-11-15 09:05:00 +09:00 Asia/Tokyo"),
            ("3pm", "2026-11-15 15:00:00 +09:00 Asia/Tokyo"),
            ("12:30 a.m.", "2026-11-15 00:30:00 +09:00 Asia/Tokyo"),
            ("3pm New York", "2026-11-15 05:00:00 +09:00 Asia/Tokyo"),
            ("3 PM in London", "2026-11-16 00:00:00 +09:00 Asia/Tokyo"),
            ("tomorrow at 3pm", "2026-11-16 15:00:00 +09:00 Asia/Tokyo"),
            ("3pm tomorrow", "2026-11-16 15:00:00 +09:00 Asia/Tokyo"),
            ("next monday", "2026-11-16 00:00:00 +09:00 Asia/Tokyo"),
            ("next monday 15:30 UTC", "2026-11-17 00:30:00 +09:00 Asia/Tokyo"),
            ("下周一", "2026-11-16 00:00:00 +09:00 Asia/Tokyo"),
            ("下周三下午三点半", "2026-11-18 15:30:00 +09:00 Asia/Tokyo"),
            ("下午3点", "2026-11-15 15:00:00 +09:00 Asia/Tokyo"),
            ("明天晚上8點15分", "2026-11-16 20:15:00 +09:00 Asia/Tokyo"),
            ("凌晨12点", "2026-11-15 00:00:00 +09:00 Asia/Tokyo"),
            ("北京时间15点", "2026-11-15 16:00:00 +09:00 Asia/Tokyo"),
            ("2026年3月29日 15:30", "2026-03-29 15:30:00 +09:00 Asia/Tokyo"),
            ("２０２６年３月２９日", "2026-03-29 00:00:00 +09:00 Asia/Tokyo"),
            ("二〇二六年三月二十九日", "2026-03-29 00:00:00 +09:00 Asia/Tokyo"),
            ("3月29号15时", "2026-03-29 15:00:00 +09:00 Asia/Tokyo"),
            ("2026/3/9 9:30", "2026-03-09 09:30:00 +09:00 Asia/Tokyo"),
        ],
    );
    assert!(ask("Tokyo", "", "teatime").unwrap_err().to_string().starts_with("`teatime` is no time: write"));
    for nonsense in ["2026-02-30", "25:00", "13", "15am", "monday tuesday", "3pm 4pm", "2月30日"] {
        assert!(ask("Tokyo", "", nonsense).is_err(), "{nonsense}");
    }
    assert_eq!(
        ask(&"x ".repeat(200), "", "").unwrap_err().to_string(),
        "an argument has 399 bytes, more than 200"
    );
}

#[test]
fn handles_daylight_saving_transitions() {
    // London skips 01:00 to 02:00 that night; in New York, 01:30 occurs twice.
    assert_eq!(render(ask("London", "", "2026-03-29T01:30")), "2026-03-29 02:30:00 +01:00 Europe/London");
    assert_eq!(
        render(ask("New York", "", "2026-11-01T01:30")),
        "2026-11-01 01:30:00 -04:00 America/New_York"
    );
    let change = |zone: &str, offset: &str, at: &str| answer(zone, offset, at).unwrap().clock_change;
    let skipped = LocalizedText::new(
        "2026-03-29 01:30 does not exist in Europe/London: the clocks skip it",
        "Europe/London 没有 2026-03-29 01:30：时钟在此跳过",
    );
    assert_eq!(change("London", "", "2026-03-29T01:30"), Some(("skipped", skipped.clone())));
    assert_eq!(change("Tokyo", "", "2026-03-29 01:30 London"), Some(("skipped", skipped.clone())));
    assert_eq!(change("London", "+1d", "2026-03-28T01:30"), Some(("skipped", skipped)));
    let repeated = LocalizedText::new(
        "2026-11-01 01:30 comes twice in America/New_York; this is the first, the second has the offset -05:00",
        "America/New_York 有两次 2026-11-01 01:30；这是第一次，第二次的时差为 -05:00",
    );
    assert_eq!(change("New York", "", "2026-11-01T01:30"), Some(("repeated", repeated)));
    assert_eq!(change("New York", "+1h", "2026-11-01T00:30"), None);
    assert_eq!(change("New York", "", "2026-11-01T05:30Z"), None);
    // Adding a day keeps the local time, even if the day has 23 hours.
    assert_eq!(render(ask("London", "+1d", "2026-03-28T12:00")), "2026-03-29 12:00:00 +01:00 Europe/London");
    assert_eq!(render(ask("London", "+24h", "2026-03-28T12:00")), "2026-03-29 13:00:00 +01:00 Europe/London");
}

#[test]
fn result_has_text_and_structured_fields() {
    let raw = answer("Tokyo", "", "").unwrap().describe();
    assert_eq!(
        raw.get(),
        concat!(
            r#"{"content":[{"type":"text","text":"2026-11-15 12:34:56 +09:00 (Asia/Tokyo, Sunday)","#,
            r#""_meta":{"toolhub/zh":"2026-11-15 12:34:56 +09:00（Asia/Tokyo，星期日）"}}],"#,
            r#""structuredContent":{"time":"2026-11-15T12:34:56+09:00","zone":"Asia/Tokyo","weekday":"Sunday","#,
            r#""utc_offset":"+09:00","unix":1794713696,"text":"2026-11-15 12:34:56 +09:00 (Asia/Tokyo, Sunday)"}}"#
        )
    );
}

#[test]
fn counts_days() {
    fn counted(input: &str) -> String {
        let mut parts = input.split(" | ");
        let mut next = || parts.next().map(str::to_owned);
        let request = TimeRequest { until: next(), at: next(), zone: next(), ..TimeRequest::default() };
        match time_at(&now(), &request) {
            Ok(answer) => answer.describe().value()["structuredContent"]["text"].as_str().unwrap().to_owned(),
            Err(message) => format!("error: {message}"),
        }
    }
    check(
        counted,
        &[
            ("Christmas", "40 days (5 weeks 5 days; 1 month 10 days) until 2026-12-25 (Friday)"),
            ("国庆节", "320 days (45 weeks 5 days; 10 months 16 days) until 2027-10-01 (Friday)"),
            ("March 5", "110 days (15 weeks 5 days; 3 months 18 days) until 2027-03-05 (Friday)"),
            ("11月15日", "2026-11-15 (Sunday) is today"),
            ("next friday", "5 days until 2026-11-20 (Friday)"),
            ("2026-11-01", "14 days (2 weeks) since 2026-11-01 (Sunday)"),
            (
                "2026-05-01 | 2026-03-01",
                "61 days (8 weeks 5 days; 2 months) from 2026-03-01 (Sunday) to 2026-05-01 (Friday)",
            ),
            ("18:00", "14 hours 25 minutes 4 seconds until 2026-11-15 18:00 (Sunday)"),
            ("2026-11-17 |  | Kiritimati", "2 days until 2026-11-17 (Tuesday)"),
            ("20:00 |  | Tokyo", "7 hours 25 minutes 4 seconds until 2026-11-15 20:00 (Sunday)"),
        ],
    );
    assert!(counted("teatime").starts_with("error: `teatime` is no time"), "{}", counted("teatime"));
    let request = TimeRequest { until: Some("Christmas".to_owned()), ..TimeRequest::default() };
    let fields = time_at(&now(), &request).unwrap().describe().value()["structuredContent"].clone();
    assert_eq!((fields["days"].as_i64(), fields["weekday"].as_str()), (Some(40), Some("Friday")));
}

#[test]
fn resolves_named_days() {
    fn day(at: &str) -> String {
        render(ask("UTC", "", at))
    }
    check(
        day,
        &[
            ("Christmas", "2026-12-25 00:00:00 +00:00 UTC"),
            ("christmas eve 18:00", "2026-12-24 18:00:00 +00:00 UTC"),
            ("明年春节", "2027-02-06 00:00:00 +00:00 UTC"),
            ("下个月1号", "2026-12-01 00:00:00 +00:00 UTC"),
            ("March 5, 2027", "2027-03-05 00:00:00 +00:00 UTC"),
            ("5th of March 2027", "2027-03-05 00:00:00 +00:00 UTC"),
            ("20 Jul 1969 3pm", "1969-07-20 15:00:00 +00:00 UTC"),
        ],
    );
    for nonsense in ["March 35", "5 5 2027", "the of", "marching 5"] {
        assert!(ask("UTC", "", nonsense).is_err(), "{nonsense}");
    }
}

#[test]
fn reports_skipped_times_and_unknown_local_zone() {
    let structured = |answer: &TimeAnswer| answer.describe().value()["structuredContent"].clone();
    let actual = structured(&answer("London", "", "2026-03-29T01:30").unwrap());
    assert_eq!(actual["clock_change"], "skipped");
    let note = "2026-03-29 02:30:00 +01:00 (Europe/London, Sunday) [2026-03-29 01:30 does not exist in Europe/London: the \
                clocks skip it]";
    assert_eq!(actual["text"], note);
    let lost = time_at(&now().with_time_zone(TimeZone::unknown()), &TimeRequest::default()).unwrap();
    let note = "2026-11-15 03:34:56 +00:00 (UTC, Sunday) [the variable `TZ` of this machine names no zone, so this is UTC: \
                give `zone`]";
    assert_eq!(structured(&lost)["text"], note);
}

#[test]
fn errors_are_localized() {
    let check = |[zone, offset, at]: [&str; 3], expect: &str| {
        let error = ask(zone, offset, at).unwrap_err();
        assert_eq!(error.localize(Lang::Zh), expect);
    };
    check([&"x".repeat(201), "", ""], "参数有 201 字节，超过 200");
    check(
        ["", "", "teatime"],
        "`teatime` 不是时间：请写成 `2026-03-29T15:00`、`3pm` 或 `明天15:30`；若不是 `zone` 的当地时间，在后面加上 `Z`、`+02:00` 或地名",
    );
    check(
        ["", "soon", ""],
        "`soon` 不是时间偏移：请写成 `+3h`、`-90m`、`2天后`、`三小时前`、`明天` 或 `下周一`",
    );
    check(["", "+1M", ""], "`+1M` 有两种读法：分钟请写 `+1min`，月请写 `+1mo`");
    check(["", "9000 years", ""], "`9000 years` 太远：超出了日历，日历到 9999 年为止");
    check(["UTC+25", "", ""], "`utc+25` 不是时差：时差从 -12:00 到 +14:00");
    check(
        ["Portland", "", ""],
        "`Portland` 有多个可能：请写出时区，为 `America/Los_Angeles`, `America/New_York` 之一",
    );
    check(
        ["Xyzzyville", "", ""],
        "不知道 `Xyzzyville` 的时区：请给出 IANA 名称（如 `Asia/Tokyo`）、同一时区的大城市，或时差（如 `UTC+8`）",
    );
    check(["Tokio", "", ""], "不知道 `Tokio` 的时区：是否指 `Tokyo`？");
}

#[test]
fn notes_are_localized() {
    let localized = |answer: &TimeAnswer| {
        let output = answer.describe().value();
        output["content"][0]["_meta"]["toolhub/zh"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        localized(&answer("London", "", "2026-03-29T01:30").unwrap()),
        "2026-03-29 02:30:00 +01:00（Europe/London，星期日） [Europe/London 没有 2026-03-29 01:30：时钟在此跳过]"
    );
    let unknown = time_at(&now().with_time_zone(TimeZone::unknown()), &TimeRequest::default()).unwrap();
    assert_eq!(
        localized(&unknown),
        "2026-11-15 03:34:56 +00:00（UTC，星期日） [本机的变量 `TZ` 不是时区，因此这是 UTC：请给出 `zone`]"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(zone in any::<String>(), offset in any::<String>(), at in any::<String>()) {
        let _ = ask(&zone, "", "");
        let _ = ask("", &offset, "");
        let _ = ask("", "", &at);
        let _ = time_at(&now(), &TimeRequest { until: Some(at), ..TimeRequest::default() });
    }

    #[test]
    fn almost_valid_text_does_not_panic(
        zone in "(utc|gmt|东|西)?[-+−]?[0-9十五]{0,3}[:：]?[0-9]{0,3}区?",
        offset in "[-+]?(in )?[0-9一两十半]{0,20}个?(半)?(h|m|d| days|天|小时|月|年){0,2}半?( ago|前|后)?",
        words in "(next |last |下)?(mon|周一|tomorrow|明天)?(下午|晚上)? ?[0-9三十]{0,3}(点|:)?[0-9半]{0,2}(分|pm| am)?",
        at in "@?-?[0-9]{0,19}[-/:T ]?[0-9]{0,2}[-/:]?[0-9]{0,2}[T ]?[0-9:]{0,5}(Z| Tokyo|\\[UTC\\]|\\+0?[0-9])?",
    ) {
        let _ = ask(&zone, &offset, &at);
        let _ = ask("", &words, &words);
    }
}
