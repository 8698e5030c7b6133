//! Parses an entity or a table from a JSON object.
//!
//! `{"Name":"x","Age@odata.type":"Edm.Int64","Age":"39"}`: a member `X@odata.type` gives the type
//! of member `X`, before or after it. Members that begin with `odata.` and other annotations are
//! skipped: clients send back what they received, and OData requires readers to ignore unknown
//! annotations. Without a type a number is an `Edm.Int32` if it has no point and fits, an
//! `Edm.Double` otherwise. Source: *Payload format for Table service operations*; recordings.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{ErrorCode, StorageError};
use crate::table::body::{Builder, invalid};
use crate::table::entity::{EntityBody, TIMESTAMP};
use crate::table::literal;
use crate::table::name::TABLE_NAME;
use crate::table::value::{EdmType, Value};

/// The annotation of a property's type, after the name and `@`.
const TYPE: &str = "odata.type";
/// The prefix of members that describe the entity.
const CONTROL: &str = "odata.";

/// The members of an object in order; names can repeat.
struct Members(Vec<(String, Member)>);

#[derive(Debug, PartialEq)]
enum Member {
    Null,
    Boolean(bool),
    Whole(i64),
    Real(f64),
    Text(String),
    /// An object or a list, which a property cannot be.
    Nested,
}

/// Parses an entity.
///
/// # Errors
/// 400 `InvalidInput` for anything but a JSON object, an unknown type and a value that does not
/// have its declared type; `DuplicatePropertiesSpecified`, `TooManyProperties`,
/// `PropertyNameInvalid`, `PropertyNameTooLong`, `PropertyValueTooLarge`, `OutOfRangeInput`,
/// `KeyValueTooLarge`.
pub(crate) fn read_entity(body: &[u8]) -> Result<EntityBody, StorageError> {
    let (types, members) = split(read_members(body)?)?;
    let mut builder = Builder::default();
    for (name, member) in members {
        builder.name(&name)?;
        if member == Member::Null || name == TIMESTAMP {
            continue;
        }
        let value = typed(member, types.get(&name).copied())?;
        builder.value(name, value)?;
    }
    Ok(builder.finish())
}

/// Parses the name of a table to create, without validating it.
///
/// # Errors
/// 400 `InvalidInput` for anything but an object, 400 `PropertiesNeedValue` without a name.
pub(crate) fn read_table_name(body: &[u8]) -> Result<String, StorageError> {
    let members = read_members(body)?.0;
    let name = members.into_iter().find(|(name, _)| name == TABLE_NAME);
    match name {
        Some((_, Member::Text(name))) => Ok(name),
        None | Some((_, Member::Null)) => Err(ErrorCode::PropertiesNeedValue.into()),
        Some(_) => Err(invalid("the table's name is not a string")),
    }
}

fn read_members(body: &[u8]) -> Result<Members, StorageError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(body).map_err(|error| invalid(&error.to_string()))
}

type Types = HashMap<String, EdmType>;

/// Splits members into the declared types and the properties.
fn split(members: Members) -> Result<(Types, Vec<(String, Member)>), StorageError> {
    let mut types = Types::new();
    let mut properties = Vec::new();
    for (name, member) in members.0 {
        if let Some((property, annotation)) = name.split_once('@') {
            if annotation == TYPE {
                let edm = named_type(&member)?;
                if types.insert(property.to_owned(), edm).is_some() {
                    return Err(ErrorCode::DuplicatePropertiesSpecified.into());
                }
            }
        } else if !name.starts_with(CONTROL) {
            properties.push((name, member));
        }
    }
    Ok((types, properties))
}

fn named_type(member: &Member) -> Result<EdmType, StorageError> {
    let Member::Text(name) = member else {
        return Err(invalid("a type is not a string"));
    };
    EdmType::parse(name).ok_or_else(|| invalid("unknown type"))
}

fn typed(member: Member, edm: Option<EdmType>) -> Result<Value, StorageError> {
    let inferred = match (&member, edm) {
        (Member::Text(text), Some(edm)) => literal::read(edm, text),
        (Member::Whole(number), Some(EdmType::Int64)) => Some(Value::Int64(*number)),
        (Member::Whole(number), Some(EdmType::Int32)) => int32(*number),
        (Member::Whole(number), Some(EdmType::Double)) => Some(Value::Double(*number as f64)),
        (Member::Real(number), Some(EdmType::Double)) => Some(Value::Double(*number)),
        (Member::Boolean(flag), Some(EdmType::Boolean)) => Some(Value::Boolean(*flag)),
        (_, Some(_)) => None,
        (Member::Text(text), None) => Some(Value::String(text.clone())),
        (Member::Boolean(flag), None) => Some(Value::Boolean(*flag)),
        (Member::Whole(number), None) => int32(*number).or(Some(Value::Double(*number as f64))),
        (Member::Real(number), None) => Some(Value::Double(*number)),
        (Member::Null | Member::Nested, None) => None,
    };
    inferred.ok_or_else(|| invalid("a value does not have its type"))
}

fn int32(number: i64) -> Option<Value> {
    i32::try_from(number).ok().map(Value::Int32)
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MemberVisitor)
    }
}

struct MemberVisitor;

impl<'de> Visitor<'de> for MemberVisitor {
    type Value = Member;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Member, E> {
        Ok(Member::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Member, E> {
        Ok(Member::Boolean(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Member, E> {
        Ok(Member::Whole(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Member, E> {
        Ok(match i64::try_from(number) {
            Ok(number) => Member::Whole(number),
            Err(_) => Member::Real(number as f64),
        })
    }

    fn visit_f64<E>(self, number: f64) -> Result<Member, E> {
        Ok(Member::Real(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Member, E> {
        Ok(Member::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Member, E> {
        Ok(Member::Text(text))
    }

    /// Skips a nested object, as deep as the JSON parser allows.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Member, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Member::Nested)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Member, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Member::Nested)
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
