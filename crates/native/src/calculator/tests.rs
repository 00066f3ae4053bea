//! Results of `calculate`, case by case.

use super::*;
use proptest::prelude::*;
use toolhub_core::lang::{Lang, Localize as _};

const NO_RATES: &str = "error: there are no exchange rates here: look up the rate, leave out the currency and multiply by \
     the rate";
const UNREADABLE: &str = "error: the expression cannot be read: an operator or an operand is missing";

fn answer(expression: &str) -> String {
    match calculate_within(expression, TIME_LIMIT, &Cancelled::default()) {
        Ok(result) => result,
        Err(message) => format!("error: {message}"),
    }
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<_> = cases
        .iter()
        .map(|(input, expect)| (input, expect, answer(input)))
        .filter(|(_, expect, actual)| actual != *expect)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn computes_exact_numbers() {
    check(&[
        ("0.1+0.2", "0.3"),
        ("1/3+1/3+1/3", "1"),
        ("2^200", "1606938044258990275541962092341162602522202993782792835301376"),
        ("12345678901234567890*98765432109876543210", "1219326311370217952237463801111263526900"),
        ("10!", "3628800"),
        ("1/3", "approx. 0.3333333333"),
        ("1/3*3", "1"),
        ("sqrt(2)", "approx. 1.4142135624"),
        ("sqrt(16)", "4"),
        ("27^(1/3)", "3"),
        ("8^(2/3)", "4"),
        ("2^-1*4", "2"),
        ("-2^2", "-4"),
        ("2^3^2", "512"),
        ("1/3/10^12", "approx. 0.0000000000003333333333"),
        ("1/9.99999999001", "approx. 0.1000000001"),
        ("1e3 + .5", "1000.5"),
        ("0xff + 1", "0x100"),
        ("255 to hex", "ff"),
        ("22/7 to fraction", "22/7"),
        ("22/7 to 3 dp", "approx. 3.143"),
        ("1.0004 to 3 dp", "approx. 1.000"),
        ("1/3 to 30 dp", "approx. 0.333333333333333333333333333333"),
        ("123456 to 2 sf", "approx. 120000"),
        ("sqrt(2) to 20 dp", "approx. 1.41421356237310"),
        ("floor(10^30/3)", "333333333333333333333333333333"),
        ("ceil(10^30/3)", "333333333333333333333333333334"),
        ("round(2*10^30/3)", "666666666666666666666666666667"),
        ("floor(-2.5) + ceil(-2.5) + round(-2.5)", "-8"),
        ("floor(7)", "7"),
        ("round(0)", "0"),
        ("floor(pi)", "3"),
        ("round(2.5 m)", "3 m"),
        ("mod(10^40, 7)", "4"),
        ("5 == 5", "true"),
        ("-i", "-i"),
        ("12 to words", "twelve"),
        ("sqrt(-4)", "2i"),
        ("sqrt(-1)", "i"),
        ("sqrt(-2)", "approx. 1.4142135624i"),
        ("7 // 2 + -7 // 2 * 2", "-5"),
        ("7.5 // 2", "3"),
        ("gcd(12,18)", "6"),
        ("gcd(2^100, 6^50, -24)", "8"),
        ("lcm(4,6)", "12"),
        ("lcm(2, 3, -4)", "12"),
        ("1e-999 * 1e999", "1"),
    ]);
}

#[test]
fn evaluates_functions_and_groups() {
    check(&[
        ("3(4+5)", "27"),
        ("(1+2)(3+4)", "21"),
        ("2pi to 5 dp", "approx. 6.28319"),
        ("sin(1)^2 + cos(1)^2", "approx. 1"),
        ("sin^2(1) + cos^2(1)", "approx. 1"),
        ("sin(30°)", "0.5"),
        ("sin(pi/2)", "1"),
        ("2 sqrt(16)", "8"),
        ("1/2 sqrt(16)", "2"),
        ("5 sqrt 4", "10"),
        ("5 min + 30 s to s", "330 s"),
        ("max(1,2)", "2"),
        ("max(100,200)", "200"),
        ("min(3, 1, 2)", "1"),
        ("MAX(3 m, 200 cm)", "3 m"),
        ("sum(1, 2, 3.5)", "6.5"),
        ("avg(1,2,4)", "approx. 2.3333333333"),
        ("pow(2, 10)", "1024"),
        ("round(2.675, 2)", "2.68"),
        ("round(2.5)", "3"),
        ("sin 30°", "0.5"),
        ("sin -30 deg", "-0.5"),
        ("2 sin 30° + cos 60 degrees", "1.5"),
        ("tan 45 deg", "1"),
        ("tan(135°)", "-1"),
        ("tan(1)", "approx. 1.5574077247"),
        ("sin^2 30°", "0.25"),
        ("sin 2 pi", "0"),
        ("sqrt 16 + 9", "13"),
        ("sqrt sqrt 2^4 * 3", "6"),
        ("log(8, 2)", "3"),
        ("log(100)", "2"),
        ("log2(8)", "3"),
        ("log10 1000 + log 10^2", "5"),
        ("log(0.001)", "-3"),
        ("log(7)", "approx. 0.84509804"),
        ("ln(e) + ln(e^2)", "3"),
        ("mod(-7, 3)", "2"),
        ("mod(5.5, 2)", "1.5"),
        ("-7 mod 3", "2"),
        ("10 - 7 mod 3 * 2", "8"),
        ("7 m mod 2 m", "1 m"),
        ("200% // 1 + 50%", "3"),
        ("2^1000000 mod 7", "2"),
        ("5 mod 3 == 2", "true"),
        ("7 mod 3", "1"),
        ("10 % 3", "1"),
        ("comb(5, 2) + perm(5, 2)", "30"),
        ("factorial(5)", "120"),
        ("hypot(3,4)", "5"),
        ("arcsin(1)", "approx. 1.5707963268"),
        ("exp(1)", "approx. 2.7182818285"),
        ("exp(ln(2))", "approx. 2"),
        ("2^pi", "approx. 8.8249778271"),
        ("10^2.123456", "approx. 132.8788925726"),
        ("1000*(1+0.05/12)^(12*30)", "approx. 4467.7443140061"),
        ("200000 * (0.045/12) * (1+0.045/12)^360 / ((1+0.045/12)^360 - 1)", "approx. 1013.3706196518"),
        ("(1 - 1/3)^5000 * 10^880", "approx. 0.3497073189"),
        ("1.0001^-100000", "approx. 0.00004542263389"),
        ("1.0375^(1/12)", "approx. 1.0030725417"),
        ("x = 3; y = x^2; y + 1", "10"),
        ("x = 3\ny = 4\nsqrt(x^2 + y^2)", "5"),
        ("2 x 3", "6"),
        ("x = 4; 2 x", "8"),
        ("((((((((((((((((((((((1+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)", "23"),
        ("(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+1))))))))))))))))))))))", "23"),
    ]);
}

#[test]
fn evaluates_units_and_percentages() {
    check(&[
        ("5 km in miles", "approx. 3.1068559612 miles"),
        ("100 km / 2 hours", "50 km / hour"),
        ("100 km / 50 km/h", "2 h"),
        ("100 km / 50 km per hour to min", "120 mins"),
        ("10 m / 2 s / s", "5 m / s^2"),
        ("10 mb in kb", "10000 kB"),
        ("1 Mb to kb", "125 kB"),
        ("1 Kb to b", "1000 b"),
        ("80 mbps to MB/s", "10 MB / s"),
        ("5 cm in in", "approx. 1.968503937 inches"),
        ("5 in", "5 inches"),
        ("$5 + $10", "$15"),
        ("$1,000.50 / $5", "200.1"),
        ("$20 + 15%", "$23"),
        ("round($2.567, 2)", "$2.57"),
        ("100元 * 2 + 5 CNY", "205 元"),
        ("1 mile / 8 minutes to km/h", "12.07008 km / h"),
        ("1/2 cup to ml", "118.29411825 ml"),
        ("72 °F to °C", "approx. 22.2222222222 °C"),
        ("98.6℉ to ℃", "37 °C"),
        ("5'10\" to cm", "177.8 cm"),
        ("5 in to cm", "12.7 cm"),
        ("5 in in cm", "12.7 cm"),
        ("5 kg + 300 g", "5.3 kg"),
        ("100 km/h in m/s", "approx. 27.7777777778 m / s"),
        ("4 m^2 to cm^2", "40000 cm^2"),
        ("(3 m)^2", "9 m^2"),
        ("80 kg * 9.8 m/s^2 to N", "784 N"),
        ("20% of 50", "10"),
        ("20% of (40 + 10)", "10"),
        ("15 percent of 200", "30"),
        ("15% * 200", "30"),
        ("200 * 15%", "30"),
        ("200 + 15%", "230"),
        ("100 - 20% + 5", "85"),
        ("50% + 25%", "75%"),
        ("50%", "50%"),
        ("1/8 to %", "12.5%"),
    ]);
}

#[test]
fn accepts_common_notations() {
    check(&[
        ("（１＋２）×３÷４", "2.25"),
        ("1，234，567 × 2 等于多少？", "2469134"),
        ("1,234,567.5 + 1", "1234568.5"),
        ("sqrt(1,000,000)", "1000"),
        ("2**10 =", "1024"),
        ("50％ of 80", "40"),
        ("5²", "25"),
        ("√16 + 1½", "5.5"),
        ("=1+1", "2"),
        ("what is 2+2", "4"),
        ("How much is 20% of 50?", "10"),
        ("请计算：2+2 等于几", "4"),
        ("1_000 + 1", "1001"),
    ]);
}

#[test]
fn errors_include_next_step() {
    check(&[
        ("1/0", "error: division by zero: the divisor comes to 0"),
        (
            "foo + 1",
            "error: `foo` is not known as a unit, constant or function; give it a value with `foo = 1; …`",
        ),
        ("sqr(4)", "error: `sqr` is not known: did you mean `sqrt`?"),
        ("foo(3)", "error: `foo` is not a known function"),
        ("foo(3, 4)", "error: `foo` is not a known function"),
        ("gcd(1.5, 3)", "error: `gcd` and `lcm` take whole numbers"),
        ("1e-9999", "error: `1e-9999` is out of range: exponents run from -999 to 9999"),
        (
            "5 公里",
            "error: `公里` is not known: write units and functions in English, such as `km`, `kg`, `sqrt`",
        ),
        ("100 USD to EUR", NO_RATES),
        ("$5 + €5", NO_RATES),
        ("100 CHF", NO_RATES),
        ("today", "error: there is no clock here: use `get_time`"),
        ("roll 5 + d20", "error: there are no dice and no random numbers here"),
        (
            "3,14 + 1",
            "error: `,` separates thousands, in groups of three, or the arguments of a function such as `max`: write the decimal point as `.`",
        ),
        (
            "sum(1,234, 5)",
            "error: the commas of `sum(…)` have two readings: leave out the separators of thousands",
        ),
        (
            "log(1,000)",
            "error: the commas of `log(…)` have two readings: leave out the separators of thousands",
        ),
        ("(1+2", "error: a `(` is not closed"),
        ("1+2)", "error: a `)` has no `(`"),
        ("()", "error: a pair of parentheses is empty"),
        ("sin()", "error: `sin()` needs an argument"),
        ("max(1,)", "error: an argument of `max` is missing"),
        ("floor 2.5", "error: write `floor` with parentheses: `floor(2.5)`"),
        ("round(1+i)", "error: only a number can be rounded"),
        ("sqrt", "error: the result is no number: give functions their arguments, as in `sqrt(2)`"),
        ("abs", "error: the result is no number: give functions their arguments, as in `sqrt(2)`"),
        ("", "error: there is nothing to calculate: give an expression such as `0.1 + 0.2`"),
        (" =？", "error: there is nothing to calculate: give an expression such as `0.1 + 0.2`"),
        ("1 +", UNREADABLE),
        ("2 3", UNREADABLE),
        ("3 * / 4", UNREADABLE),
        ("/ 4", UNREADABLE),
        ("7 mod", UNREADABLE),
        ("1 m + 1 s", "error: cannot convert from s to m: units 'second' and 'meter' are incompatible"),
        (
            "5 mod 2 m",
            "error: cannot convert from unitless to m^-1: units 'unitless' and 'meter^-1' are incompatible",
        ),
        ("5 > 3", "error: numbers cannot be compared here: subtract one from the other"),
        ("@2024-01-01 + 5", "error: there are no dates here: use `get_time`"),
    ]);
    let long = "1+".repeat(6_000);
    assert!(answer(&long).starts_with("error: the expression has 12000 characters"));
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert!(answer(&deep).starts_with("error: parentheses are nested more than 64 deep"));
}

#[test]
fn errors_are_localized() {
    let long = "1".repeat(10_001);
    let chain = vec!["1"; 70].join(" xor ");
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    let cases = [
        (long.as_str(), "表达式有 10001 个字符，超过 10000 个：请分开计算"),
        ("1 +", "无法读懂表达式：缺少运算符或运算数"),
        ("3 * / 4", "无法读懂表达式：缺少运算符或运算数"),
        ("100 USD to EUR", "这里没有汇率：请先查出汇率，去掉货币单位后乘以汇率"),
        ("today", "这里没有时钟：请使用 `get_time`"),
        ("@2024-01-01 + 5", "这里不处理日期：请使用 `get_time`"),
        ("roll 5 + d20", "这里没有骰子，也没有随机数"),
        ("1/0", "除数为零：除数的结果是 0"),
        ("1 m + 1 s", "无法把 s 换算成 m：单位 second 和 meter 不相容"),
        ("foo(3)", "没有函数 `foo`"),
        ("5 公里", "不认识 `公里`：单位和函数请用英文，例如 `km`、`kg`、`sqrt`"),
        ("sqr(4)", "不认识 `sqr`：是否指 `sqrt`？"),
        ("foo + 1", "`foo` 不是已知的单位、常数或函数；可用 `foo = 1; …` 给它赋值"),
        ("sin()", "`sin()` 需要参数"),
        ("pow(1, 2, 3)", "`pow` 不接受 3 个参数"),
        ("round(1+i)", "只有数字可以取整"),
        ("sqrt", "结果不是数字：请给函数写上参数，例如 `sqrt(2)`"),
        (chain.as_str(), "表达式一段太长：请用括号分段"),
        ("1 ~ 2", "`~` 在表达式中没有意义"),
        ("a: a", "`:` 在这里没有意义：比例请写成除法，函数请写名称"),
        (".", "`.` 旁边要有数字"),
        ("1e-9999", "`1e-9999` 超出范围：指数须在 -999 到 9999 之间"),
        ("1/3 to 2000 dp", "`2000 dp` 太多：最多 1000"),
        ("1+2)", "`)` 没有对应的 `(`"),
        ("(1+2", "`(` 没有闭合"),
        ("()", "有一对括号是空的"),
        ("", "没有可计算的内容：请给出表达式，例如 `0.1 + 0.2`"),
        ("floor 2.5", "`floor` 要写括号：`floor(2.5)`"),
        ("max(1,)", "`max` 缺少一个参数"),
        (deep.as_str(), "括号嵌套超过 64 层：请先计算各部分"),
        ("sum(1,234, 5)", "`sum(…)` 中的逗号有两种读法：请去掉千位分隔符"),
        ("gcd(1.5, 3)", "`gcd` 和 `lcm` 只接受整数"),
        ("3,14 + 1", "`,` 用于分隔千位（每三位一组），或分隔 `max` 等函数的参数：小数点请写成 `.`"),
        ("1 << 2", "不支持移位运算：请乘以或除以 2 的幂"),
        ("5 > 3", "这里不能比较大小：请用一个数减去另一个数"),
        ("x => x", "这里不能定义函数"),
        ("1 + ∞", "这里没有无穷大"),
        ("'a'", "`'` 在数字之后表示英尺或英寸；这里不支持文本"),
    ];
    let localized = |expression: &str| {
        calculate_within(expression, TIME_LIMIT, &Cancelled::default())
            .map_err(|error| error.localize(Lang::Zh))
    };
    let wrong: Vec<_> = cases
        .iter()
        .map(|(input, expect)| (input, expect, localized(input)))
        .filter(|(_, expect, result)| result.as_ref().err().map(String::as_str) != Some(*expect))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rejects_long_results_in_both_languages() {
    let error = calculate_within("10^100000", Duration::from_secs(60), &Cancelled::default()).unwrap_err();
    let expect = LocalizedText::new(
        "the result has 100001 characters, more than 100000: ask for fewer, as in `… to 20 sf`",
        "结果有 100001 个字符，超过 100000 个：请减少位数，例如 `… to 20 sf`",
    );
    assert_eq!(error, expect);
}

#[test]
fn evaluates_long_chains() {
    assert_eq!(answer(&vec!["1.5"; 2_000].join("+")), "3000");
    assert_eq!(answer(&vec!["1"; 2_000].join("*")), "1");
    assert_eq!(answer(&format!("sum({})", vec!["2"; 2_000].join(", "))), "4000");
}

/// Runs on the stack of a test thread, which is as small as that of a worker.
#[test]
fn repetition_neither_overflows_nor_times_out() {
    let started = Instant::now();
    let attempt = |text: &str| {
        let _ = calculate_within(text, Duration::from_millis(50), &Cancelled::default());
    };
    for (bit, count) in
        [("-", 9_000), ("!", 60), ("1^", 4_000), ("sqrt ", 1_900), ("sqrt(", 60), ("1 m ", 2_000)]
    {
        for text in [bit.repeat(count) + "1", format!("1{}", bit.repeat(count)), bit.repeat(31) + "1"] {
            attempt(&text);
        }
    }
    for bit in [
        " to m", " m", "% of 1", "(1)", " 1/2", "+-+-1", "*(1+", "max(1,", ";", "=", " mod 3", "// 3",
        "sin ", "foo(", "$", "^-2", "'",
    ] {
        for count in [20, 60, 1_000] {
            attempt(&format!("1{}", bit.repeat(count)));
            attempt(&format!("{}1", bit.repeat(count)));
        }
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn aborts_expensive_computations() {
    let limit = Duration::from_millis(100);
    for hard in ["9999999^9999999", "10^10^10", "1000000000!", "fib(1000000000)", "1e-9999 * 1e-9999"] {
        let started = Instant::now();
        let actual = calculate_within(hard, limit, &Cancelled::default());
        assert!(actual.is_err(), "{hard}: {actual:?}");
        assert!(started.elapsed() < limit * 100, "{hard} took {:?}", started.elapsed());
    }
    let cancelled = Cancelled::default();
    cancelled.set();
    assert!(calculate_within("2^100 + 1", TIME_LIMIT, &cancelled).is_err());
}

/// Fragments of expressions: random characters alone would rarely reach the planner.
fn bits() -> impl Strategy<Value = String> {
    let bit = prop::sample::select(vec![
        "1", "2.5", "0", "(", ")", "+", "-", "*", "/", "^", "!", "%", ",", ";", "=", "x", "sqrt", "max(",
        "km", "to", "of", "in", "e", "pi", " ", "'", "\"", "sin^2(", "0x1f", "１", "，", "²", "½", "mod",
        "//", "$", "gcd(", "sin", "&", "|", "==",
    ]);
    prop::collection::vec(bit, 0..40).prop_map(|bits| bits.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = calculate_within(&text, Duration::from_millis(20), &Cancelled::default());
    }

    #[test]
    fn no_expression_panics(text in bits()) {
        let _ = calculate_within(&text, Duration::from_millis(20), &Cancelled::default());
    }

    #[test]
    fn sums_match_reference(values in prop::collection::vec(-1_000_000_i64..1_000_000, 1..60)) {
        let text = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ");
        prop_assert_eq!(answer(&text), values.iter().sum::<i64>().to_string());
    }
}
