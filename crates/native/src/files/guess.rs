//! Guesses the encoding of a text that is not UTF-8, by the plausibility of its characters.

use std::collections::HashSet;

use encoding_rs::{BIG5, CoderResult, EUC_KR, Encoding, GB18030, SHIFT_JIS};

/// A double-byte encoding, and statistics of its texts.
struct Candidate {
    encoding: &'static Encoding,
    /// Characters that make up half of a typical text.
    frequent: &'static str,
    /// The plausibility of a character by its two bytes: 1 for common ones, negative for very rare ones.
    weigh: fn(u8, u8) -> f32,
}

const CANDIDATES: [Candidate; 4] = [
    Candidate {
        encoding: GB18030,
        frequent: "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用\
                   道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日\
                   者意无力与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应向头文体美相见利\
                   世界测试件数据信息请您",
        weigh: |lead, trail| match (lead, trail) {
            (_, ..0xa1) => -1.0,
            (0xb0..=0xd7, _) => 1.0,
            (0xa1 | 0xa3, _) => 0.8,
            (0xd8..=0xf7, _) => 0.3,
            _ => -1.0,
        },
    },
    Candidate {
        encoding: BIG5,
        frequent: "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作里用\
                   道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心本前開但因只從想實日\
                   者意無力與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應向頭文體美相見利\
                   世界測試件數據資訊請您",
        weigh: |lead, _| match lead {
            0xa4..=0xc6 => 1.0,
            0xa1 => 0.8,
            0xa2 | 0xa3 | 0xc9..=0xf9 => 0.3,
            _ => -1.0,
        },
    },
    Candidate {
        encoding: SHIFT_JIS,
        frequent: "あいうえおかきくけこさしすせそたちつてとなにのはへまもやよらりるれろわをんがぎぐげごじずぜだでどばぶべ\
                   っゃゅょー日本人年大中出行一会",
        weigh: |lead, trail| match (lead, trail) {
            (0x82, 0x9f..) | (0x83, ..=0x96) => 1.0,
            (0x88..=0x97, _) => 0.9,
            (0x81 | 0x82, _) => 0.8,
            (0x98..=0x9f | 0xe0..=0xea, _) => 0.2,
            _ => -1.0,
        },
    },
    Candidate {
        encoding: EUC_KR,
        frequent: "이다는에의을가하고지한로사도를은들아기서나어리인자대시스정해일수그있요세보부으전상동제연주국라원성안공\
                   니마과비신조적것물유우구면생만장여문않게되중화개위소오내년경방관무글파여녕습",
        weigh: |lead, trail| match (lead, trail) {
            (_, ..0xa1) => -1.0,
            (0xb0..=0xc8 | 0xa1 | 0xa3, _) => 0.8,
            (0xca..=0xfd, _) => 0.1,
            _ => -1.0,
        },
    },
];

/// Minimum score of the best candidate, and its minimum distance to the next.
const MIN_SCORE: f32 = 0.8;
const MIN_MARGIN: f32 = 0.15;

/// The encoding of a text that starts with `sample`; `None` if it is unclear.
pub(super) fn guess(sample: &[u8]) -> Option<&'static Encoding> {
    let fitting = CANDIDATES.iter().filter(|candidate| fits(candidate.encoding, sample));
    let mut scores: Vec<_> = fitting.map(|candidate| (candidate.score(sample), candidate.encoding)).collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    match scores.as_slice() {
        [(best, encoding), rest @ ..] if *best >= MIN_SCORE => {
            rest.first().is_none_or(|(next, _)| best - next >= MIN_MARGIN).then_some(*encoding)
        }
        _ => None,
    }
}

/// Whether `bytes` are valid in `encoding`; the last character may be truncated.
pub(super) fn fits(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = vec![0; bytes.len() * 3 + 16];
    let (result, _, _, errors) = decoder.decode_to_utf8(bytes, &mut text, false);
    result == CoderResult::InputEmpty && !errors
}

impl Candidate {
    /// The average plausibility of the characters, plus the share of frequent ones.
    fn score(&self, sample: &[u8]) -> f32 {
        let (frequent, _, _) = self.encoding.encode(self.frequent);
        let frequent: HashSet<&[u8]> = frequent.chunks(2).collect();
        let (mut count, mut sum) = (0.0_f32, 0.0_f32);
        let mut rest = sample;
        while let [lead, after @ ..] = rest {
            rest = after;
            if lead.is_ascii() {
                continue;
            }
            count += 1.0;
            // Half-width katakana take one byte; they are very rare in texts.
            if self.encoding == SHIFT_JIS && (0xa1..=0xdf).contains(lead) {
                sum -= 1.0;
                continue;
            }
            let [trail, after @ ..] = rest else { break };
            rest = after;
            let is_frequent = frequent.contains([*lead, *trail].as_slice());
            sum += (self.weigh)(*lead, *trail) + if is_frequent { 1.0 } else { 0.0 };
        }
        sum / count.max(1.0)
    }
}
