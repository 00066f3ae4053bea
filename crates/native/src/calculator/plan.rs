//! Parses an expression into steps that fend evaluates one by one.
//!
//! fend parses every operand after a `+` or `-` twice, so nested parentheses take exponential time, and its recursion
//! can overflow the stack; neither can be interrupted. So fend never gets parentheses: each group and each call becomes
//! a variable, and long chains are split. Values stay exact, since variables hold fend's own values.

use toolhub_core::lang::LocalizedText;

use super::commas::{misplaced_comma, refuse_ambiguous, thousands_at};
use super::piece::{self, Piece};
use super::planner::Planner;
use super::steps::{CalculationPlan, Step};
use super::tokens::Token;
use super::{errors, fend, flat, function_call, functions};

const MAX_DEPTH: usize = 64;

/// Plans the evaluation of an expression.
pub(super) fn plan(tokens: &[Token]) -> Result<CalculationPlan, LocalizedText> {
    let mut planner = Planner { tokens, at: 0, depth: 0, steps: Vec::new(), names: 0 };
    let mut answer = None;
    while planner.at < tokens.len() {
        if planner.take(&Token::Semicolon) {
            continue;
        }
        let target = planner.target();
        let mut pieces = planner.pieces(Commas::Thousands)?;
        match planner.peek() {
            None | Some(Token::Semicolon) => {}
            Some(_) => return Err(LocalizedText::new("a `)` has no `(`", "`)` 没有对应的 `(`")),
        }
        let precision = piece::take_precision(&mut pieces)?;
        let text = planner.reduce(pieces)?;
        let text = match target {
            Some(name) => {
                planner.steps.push(Step::Assign { name: name.clone(), text });
                name
            }
            None => text,
        };
        answer = Some((text, precision));
    }
    let (answer, precision) = answer.ok_or_else(|| {
        LocalizedText::new(
            "there is nothing to calculate: give an expression such as `0.1 + 0.2`",
            "没有可计算的内容：请给出表达式，例如 `0.1 + 0.2`",
        )
    })?;
    Ok(CalculationPlan { steps: planner.steps, answer, precision })
}

/// The meaning of a comma in the current context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commas {
    Thousands,
    Arguments,
}

impl Planner<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    /// The variable that a statement assigns to.
    fn target(&mut self) -> Option<String> {
        match self.tokens.get(self.at..self.at + 2)? {
            [Token::Word(name), Token::Sign("=")] => {
                self.at += 2;
                Some(name.clone())
            }
            _ => None,
        }
    }

    /// Parses up to the end of a group, an argument or a statement.
    fn pieces(&mut self, commas: Commas) -> Result<Vec<Piece>, LocalizedText> {
        let mut pieces: Vec<Piece> = Vec::new();
        while let Some(token) = self.peek() {
            match token.clone() {
                Token::Close | Token::Semicolon => break,
                Token::Comma { .. } if commas == Commas::Arguments => break,
                Token::Comma { .. } => return Err(misplaced_comma()),
                Token::Number(number) => {
                    self.at += 1;
                    let number = if commas == Commas::Thousands { self.thousands(number)? } else { number };
                    piece::push_number(&mut pieces, number);
                }
                Token::Sign(sign) => {
                    self.at += 1;
                    pieces.push(Piece::Sign(sign));
                }
                Token::Open => {
                    let inner = self.group()?;
                    piece::push_operand(&mut pieces, inner);
                }
                Token::Word(word) => {
                    self.at += 1;
                    self.word(word, &mut pieces)?;
                }
            }
        }
        Ok(pieces)
    }

    fn word(&mut self, word: String, pieces: &mut Vec<Piece>) -> Result<(), LocalizedText> {
        let after_operand = pieces.last().is_some_and(Piece::ends_operand);
        let next_is_operand = match self.peek() {
            Some(Token::Number(_) | Token::Open) => true,
            Some(Token::Word(next)) => !piece::is_operator(next),
            _ => false,
        };
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "'" | "\"" if !matches!(pieces.last(), Some(Piece::Operand(_))) => {
                return Err(LocalizedText::new(
                    format!("`{word}` means feet or inches, after a number; there are no texts here"),
                    format!("`{word}` 在数字之后表示英尺或英寸；这里不支持文本"),
                ));
            }
            "%" | "percent" if after_operand => {
                pieces.push(if next_is_operand && word == "%" { Piece::Sign("mod") } else { Piece::Percent });
            }
            "x" if matches!(pieces.last(), Some(Piece::Operand(_) | Piece::Percent)) && next_is_operand => {
                pieces.push(if self.assigned(&word) { Piece::Word(word) } else { Piece::Sign("*") });
            }
            // `5 in to cm` and `5 cm to in`: `in` is an inch if no unit follows to convert to.
            "in" if !next_is_operand
                && pieces.last().is_some_and(|last| {
                    matches!(last, Piece::Operand(_)) || last.is_word_of(&piece::CONVERSIONS)
                }) =>
            {
                pieces.push(Piece::word("inch"));
            }
            "mod" if after_operand => pieces.push(Piece::Sign("mod")),
            "per" => pieces.push(Piece::Sign("per")),
            _ => match (functions::known(&lower), self.exponent_of_call()) {
                (Some(name), Some(exponent)) => {
                    let value = self.call(name)?;
                    piece::push_operand(pieces, Piece::Operand(value));
                    pieces.extend(exponent);
                }
                (Some(name @ ("floor" | "ceil" | "round")), None) => {
                    return Err(LocalizedText::new(
                        format!("write `{name}` with parentheses: `{name}(2.5)`"),
                        format!("`{name}` 要写括号：`{name}(2.5)`"),
                    ));
                }
                (Some(_), None) if functions::is_prefix(&lower) => {
                    piece::push_operand(pieces, Piece::Word(lower));
                }
                _ if self.peek() == Some(&Token::Open)
                    && !piece::is_operator(&word)
                    && !self.assigned(&word)
                    && !fend::is_unit(&word) =>
                {
                    return Err(errors::unknown_function(&word));
                }
                _ => pieces.push(Piece::Word(word)),
            },
        }
        Ok(())
    }

    fn assigned(&self, name: &str) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Assign { name: known, .. } if known == name))
    }

    /// If parentheses with the argument follow, returns the exponent between them, as in `sin^2(x)`.
    fn exponent_of_call(&mut self) -> Option<Vec<Piece>> {
        match self.tokens.get(self.at..)? {
            [Token::Open, ..] => Some(Vec::new()),
            [Token::Sign("^"), Token::Number(number), Token::Open, ..] => {
                let exponent = vec![Piece::Sign("^"), Piece::Operand(number.clone())];
                self.at += 2;
                Some(exponent)
            }
            _ => None,
        }
    }

    /// Parses a group in parentheses as one operand.
    fn group(&mut self) -> Result<Piece, LocalizedText> {
        self.enter()?;
        let pieces = self.pieces(Commas::Thousands)?;
        self.leave()?;
        match <[Piece; 1]>::try_from(pieces) {
            // `2^(3)` is equivalent to `2^3`, and `to (km)` to `to km`.
            Ok([single @ (Piece::Operand(_) | Piece::Word(_))]) => Ok(single),
            Ok([other]) => self.operand(vec![other]).map(Piece::Operand),
            Err(pieces) => self.operand(pieces).map(Piece::Operand),
        }
    }

    fn call(&mut self, name: &'static str) -> Result<String, LocalizedText> {
        let commas = if functions::takes_several(name) { Commas::Arguments } else { Commas::Thousands };
        let from = self.at;
        self.enter()?;
        let mut arguments = Vec::new();
        loop {
            let pieces = self.pieces(commas)?;
            if !pieces.is_empty() {
                arguments.push(self.operand(pieces)?);
            } else if !arguments.is_empty() || matches!(self.peek(), Some(Token::Comma { .. })) {
                return Err(LocalizedText::new(
                    format!("an argument of `{name}` is missing"),
                    format!("`{name}` 缺少一个参数"),
                ));
            }
            if !matches!(self.peek(), Some(Token::Comma { .. })) {
                break;
            }
            self.at += 1;
        }
        self.leave()?;
        if commas == Commas::Arguments {
            refuse_ambiguous(name, self.tokens.get(from..self.at).unwrap_or_default())?;
        }
        function_call::apply(self, name, &arguments)
    }

    fn enter(&mut self) -> Result<(), LocalizedText> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(LocalizedText::new(
                format!("parentheses are nested more than {MAX_DEPTH} deep: calculate the parts first"),
                format!("括号嵌套超过 {MAX_DEPTH} 层：请先计算各部分"),
            ));
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), LocalizedText> {
        self.depth -= 1;
        match self.take(&Token::Close) {
            true => Ok(()),
            false => Err(LocalizedText::new("a `(` is not closed", "`(` 没有闭合")),
        }
    }

    /// Parses a number with commas as thousands separators.
    fn thousands(&mut self, first: String) -> Result<String, LocalizedText> {
        let mut number = first;
        while matches!(self.peek(), Some(Token::Comma { .. })) {
            let Some(digits) = thousands_at(self.tokens, self.at) else { return Err(misplaced_comma()) };
            number.push_str(digits);
            self.at += 2;
        }
        Ok(number)
    }

    /// Converts pieces to the text of one operand.
    pub(super) fn operand(&mut self, pieces: Vec<Piece>) -> Result<String, LocalizedText> {
        match pieces.as_slice() {
            [] => Err(LocalizedText::new("a pair of parentheses is empty", "有一对括号是空的")),
            [Piece::Operand(text)] => Ok(text.clone()),
            _ => {
                let text = self.reduce(pieces)?;
                self.assign(text)
            }
        }
    }

    /// Converts pieces of any length to text.
    pub(super) fn reduce(&mut self, pieces: Vec<Piece>) -> Result<String, LocalizedText> {
        flat::reduce(self, pieces)
    }
}
