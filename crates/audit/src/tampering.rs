//! What a verification found.

use toolhub_core::lang::{Lang, Localize, LocalizedText};

/// What is wrong with a log, and where. Records are named by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tampering {
    /// This record was changed.
    Changed {
        /// The record.
        sequence: u64,
    },
    /// These records are missing, while later ones exist.
    Missing {
        /// The first one.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// Another record is in the place of this one.
    Reordered {
        /// The record that belongs there.
        expected: u64,
        /// The record that is there.
        found: u64,
    },
    /// The summary of a batch does not fit its records: numbers, times, principals or hashes.
    ChangedSummary {
        /// The first record of the batch.
        first: u64,
        /// The last record of the batch.
        last: u64,
    },
    /// Records were replaced and all later hashes recomputed: the log has another hash than the one that was signed.
    Rewritten {
        /// Up to this record the log is confirmed by a checkpoint.
        after: u64,
        /// The checkpoint that does not fit.
        until: u64,
    },
    /// The end of the log was cut off.
    Truncated {
        /// The last record that exists.
        last: u64,
        /// The last record that a checkpoint or the log itself states.
        covered: u64,
    },
    /// Records were added without the store.
    Added {
        /// The first one.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// The state of the log, with its id and its end, was removed, while records or checkpoints exist.
    MissingState {
        /// The first record or checkpoint that exists.
        first: u64,
    },
    /// A checkpoint is not signed by an accepted key.
    BadSignature {
        /// The record that the checkpoint is about.
        sequence: u64,
        /// The id of the key.
        key: String,
        /// What is wrong.
        problem: SignatureProblem,
    },
    /// The records, or a checkpoint, belong to another log.
    ForeignChain {
        /// The record, or the record that the checkpoint is about.
        sequence: u64,
    },
    /// A line of an export was changed.
    ChangedLine {
        /// Its number, from 1.
        line: u64,
    },
}

/// What is wrong with a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureProblem {
    /// No accepted key has this id.
    UnknownKey,
    /// The signature does not fit.
    Invalid,
}

impl Localize for Tampering {
    fn localize(&self, lang: Lang) -> String {
        self.text().localize(lang)
    }
}

impl std::fmt::Display for Tampering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.localize(Lang::En))
    }
}

impl std::error::Error for Tampering {}

impl Tampering {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Changed { sequence } => LocalizedText::new(
                format!("record {sequence} was changed"),
                format!("第 {sequence} 条记录被修改"),
            ),
            Self::Missing { first, last } if first == last => {
                LocalizedText::new(format!("record {first} is missing"), format!("缺少第 {first} 条记录"))
            }
            Self::Missing { first, last } => LocalizedText::new(
                format!("records {first} to {last} are missing"),
                format!("缺少第 {first} 至 {last} 条记录"),
            ),
            Self::Reordered { expected, found } => LocalizedText::new(
                format!("records were reordered: record {found} is in the place of record {expected}"),
                format!("记录顺序被改动：第 {expected} 条的位置上是第 {found} 条"),
            ),
            Self::ChangedSummary { first, last } => LocalizedText::new(
                format!("the summary of the batch of records {first} to {last} was changed"),
                format!("第 {first} 至 {last} 条记录所在批次的摘要被修改"),
            ),
            Self::Rewritten { after, until } => LocalizedText::new(
                format!(
                    "records between {after} and {until} were rewritten: the signed hash of record {until} does not fit"
                ),
                format!("第 {after} 条之后、第 {until} 条及之前的记录被改写：与第 {until} 条的签名哈希不符"),
            ),
            Self::Truncated { last, covered } => LocalizedText::new(
                format!("the log was truncated: it ends with record {last}, but contained record {covered}"),
                format!("日志被截断：现在止于第 {last} 条，而此前已有第 {covered} 条"),
            ),
            Self::Added { first, last } => LocalizedText::new(
                format!("records {first} to {last} were added without the store"),
                format!("第 {first} 至 {last} 条记录不是由存储写入的"),
            ),
            Self::MissingState { first } => LocalizedText::new(
                format!(
                    "the state of the log (table `audit_log`) was removed, while record {first} or its checkpoint exists"
                ),
                format!("日志的状态（表 `audit_log`）已被删除，而第 {first} 条记录或其检查点仍然存在"),
            ),
            Self::BadSignature { sequence, key, problem: SignatureProblem::UnknownKey } => {
                LocalizedText::new(
                    format!(
                        "the checkpoint at record {sequence} is signed by the unknown key `{key}`: if another hub signed it, add its public key to the file of public keys"
                    ),
                    format!(
                        "第 {sequence} 条记录处的检查点由未知密钥 `{key}` 签名：若由其他 hub 签名，请把它的公钥加入公钥文件"
                    ),
                )
            }
            Self::BadSignature { sequence, key, problem: SignatureProblem::Invalid } => LocalizedText::new(
                format!("the checkpoint at record {sequence} has no valid signature of key `{key}`"),
                format!("第 {sequence} 条记录处的检查点没有密钥 `{key}` 的有效签名"),
            ),
            Self::ForeignChain { sequence } => LocalizedText::new(
                format!(
                    "the log is not the expected one: record {sequence}, or its checkpoint, belongs to another log"
                ),
                format!("不是预期的日志：第 {sequence} 条记录或其检查点属于另一份日志"),
            ),
            Self::ChangedLine { line } => LocalizedText::new(
                format!("line {line} of the export was changed"),
                format!("导出文件的第 {line} 行被修改"),
            ),
        }
    }
}
