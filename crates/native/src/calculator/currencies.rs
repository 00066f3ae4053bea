//! Currencies, which fend gets as units without exchange rates.

/// Currencies by their names; the first is displayed. fend itself only supports currencies with exchange rates.
pub(super) const CURRENCIES: [(&str, &[&str]); 11] = [
    ("$", &["USD", "美元"]),
    ("€", &["EUR", "欧元"]),
    ("£", &["GBP", "英镑"]),
    ("元", &["CNY", "RMB", "人民币", "块", "块钱"]),
    ("¥", &[]),
    ("JPY", &["日元"]),
    ("HKD", &["港币", "港元"]),
    ("₩", &["KRW", "韩元"]),
    ("₹", &["INR"]),
    ("BTC", &[]),
    ("ETH", &[]),
];

/// Whether `name` is a currency.
pub(super) fn is_currency(name: &str) -> bool {
    CURRENCIES.iter().any(|(symbol, names)| *symbol == name || names.contains(&name))
}
