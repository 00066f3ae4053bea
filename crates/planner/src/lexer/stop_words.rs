//! English words without a meaning of their own.

/// Function words that end a phrase.
const STOPS: &str = " a an the of in on at to for from by with and or but is are was were be been am do does did can could \
would should will shall may might must i you he she it we they me him her us them my your his its our their this that these \
those what which who whom whose when where why how please if then than so as about into over under between during through \
using use via per not no also there here have has had having given get give show tell find calculate compute create make let \
help want need like know each both all some any such while after before until up out off just very more most much many other \
whether regarding concerning last next past current latest upcoming recent today tomorrow now i'd i'm i'll i've what's it's let's including include near ";

pub(crate) fn is_stop(word: &str) -> bool {
    STOPS.contains(&format!(" {} ", word.to_lowercase().replace('’', "'")))
}
