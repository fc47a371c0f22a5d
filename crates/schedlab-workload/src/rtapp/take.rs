//! Reads typed values out of an object's members, each with an error that names the key.

use super::json::{At, Json, Member, Node};
use super::RtAppError;

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) struct Object<'a> {
    pub members: &'a [Member],
}

impl<'a> Object<'a> {
    /// The object that a member must be.
    pub fn of(member: &'a Member) -> Result<Self, RtAppError> {
        match &member.value.json {
            Json::Object(members) => Ok(Object { members }),
            _ => Err(wrong(member, "an object")),
        }
    }

    /// The same, for callers that put the member's key before every error themselves.
    pub fn inside(member: &'a Member) -> Result<Self, RtAppError> {
        Object::of(member).map_err(|error| RtAppError { key: String::new(), ..error })
    }

    /// The member of this name; it may stand there once only, because rt-app takes the last and workgen the first.
    pub fn get(&self, key: &str) -> Result<Option<&'a Member>, RtAppError> {
        let mut found = self.members.iter().filter(|member| member.key == key);
        let first = found.next();
        match found.next() {
            Some(again) => Err(RtAppError::at(again.at, key, format!("\"{key}\" is given twice"))
                .hint("rt-app takes the last, workgen the first: keep one")),
            None => Ok(first),
        }
    }

    /// A whole number.
    pub fn int(&self, key: &str) -> Result<Option<(i64, At)>, RtAppError> {
        self.get(key)?.map(|member| Ok((int(member)?, member.at))).transpose()
    }

    /// A boolean.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, RtAppError> {
        let Some(member) = self.get(key)? else { return Ok(None) };
        match member.value.json {
            Json::Bool(value) => Ok(Some(value)),
            _ => Err(wrong(member, "true or false")),
        }
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<Option<(&'a str, At)>, RtAppError> {
        self.get(key)?.map(|member| Ok((text(member)?, member.at))).transpose()
    }
}

/// The whole number that a member must be.
pub(super) fn int(member: &Member) -> Result<i64, RtAppError> {
    match member.value.json {
        Json::Int(value) => Ok(value),
        _ => Err(wrong(member, "a whole number")),
    }
}

/// The string that a member must be.
pub(super) fn text(member: &Member) -> Result<&str, RtAppError> {
    match &member.value.json {
        Json::Text(value) => Ok(value),
        _ => Err(wrong(member, "a string")),
    }
}

/// The error about a member of another type.
pub(super) fn wrong(member: &Member, wanted: &str) -> RtAppError {
    let Node { json, .. } = &member.value;
    let what = format!("\"{}\" is {}, not {wanted}", super::json::short(&member.key), json.kind());
    RtAppError::at(member.at, &member.key, what).hint(format!("expected {wanted}"))
}
