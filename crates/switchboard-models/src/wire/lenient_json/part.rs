//! Reading the parts of an answer in one pass.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A part of an answer, which is read from one type of JSON. Other types count as missing, and so does
/// null.
pub(in crate::wire) trait Part<'a>: Sized {
    /// Reads the part.
    fn read<D: Deserializer<'a>>(json: D) -> Result<Option<Self>, D::Error> {
        json.deserialize_any(PartVisitor(PhantomData))
    }

    /// Reads the part from an object.
    fn from_object<A: MapAccess<'a>>(mut object: A) -> Result<Option<Self>, A::Error> {
        while object.next_key::<Key<'a>>()?.is_some() {
            object.next_value::<IgnoredAny>()?;
        }
        Ok(Self::from_other())
    }

    /// Reads the part from a list.
    fn from_list<A: SeqAccess<'a>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::from_other())
    }

    /// The part that stands for a value of another type.
    fn from_other() -> Option<Self> {
        None
    }
}

/// Reads a part from the whole of `json`.
pub(in crate::wire) fn parse<'a, T: Part<'a>>(json: &'a str) -> Option<T> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let part = T::read(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    part
}

/// The JSON of a value.
impl<'a> Part<'a> for &'a str {
    fn read<D: Deserializer<'a>>(json: D) -> Result<Option<Self>, D::Error> {
        let json = <&'a RawValue>::deserialize(json)?.get();
        Ok((json != "null").then_some(json))
    }
}

/// The elements of a list.
impl<'a, T: Part<'a>> Part<'a> for Vec<Option<T>> {
    fn from_list<A: SeqAccess<'a>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut elements = Self::new();
        while let Some(ReadPart(element)) = list.next_element()? {
            elements.push(element);
        }
        Ok(Some(elements))
    }
}

/// A part that was read.
pub(in crate::wire) struct ReadPart<T>(pub(in crate::wire) Option<T>);

impl<'a, T: Part<'a>> Deserialize<'a> for ReadPart<T> {
    fn deserialize<D: Deserializer<'a>>(json: D) -> Result<Self, D::Error> {
        T::read(json).map(Self)
    }
}

/// The name of a field. In bytes, since it may hold a lone surrogate.
pub(in crate::wire) struct Key<'a>(pub(in crate::wire) Cow<'a, [u8]>);

impl<'a> Deserialize<'a> for Key<'a> {
    fn deserialize<D: Deserializer<'a>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_bytes(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'a> Visitor<'a> for KeyVisitor {
    type Value = Key<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_bytes<E: Error>(self, name: &'a [u8]) -> Result<Key<'a>, E> {
        Ok(Key(Cow::Borrowed(name)))
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<Key<'a>, E> {
        Ok(Key(Cow::Owned(name.to_owned())))
    }
}

struct PartVisitor<T>(PhantomData<T>);

impl<'a, T: Part<'a>> Visitor<'a> for PartVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'a>>(self, object: A) -> Result<Option<T>, A::Error> {
        T::from_object(object)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, list: A) -> Result<Option<T>, A::Error> {
        T::from_list(list)
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<T>, E> {
        Ok(T::from_other())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<T>, E> {
        Ok(T::from_other())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<T>, E> {
        Ok(T::from_other())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<T>, E> {
        Ok(T::from_other())
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<T>, E> {
        Ok(T::from_other())
    }
}

/// Defines a struct with some fields of a JSON object. Each is a [`Part`]: the JSON of the field's value
/// unless another type is given. The last of repeated fields counts. A field may have another name in
/// JSON, as in `kind = "type"`.
macro_rules! json_object {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@type) => { &'a str };
    (@type $type:ty) => { $type };
    ($(#[$meta:meta])* struct $name:ident {
        $($field:ident $(= $json_name:literal)? $(: $type:ty)?),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Default)]
        pub(super) struct $name<'a> {
            $(pub(super) $field: Option<json_object!(@type $($type)?)>,)*
        }

        impl<'a> $crate::wire::lenient_json::Part<'a> for $name<'a> {
            fn from_object<A: serde::de::MapAccess<'a>>(
                mut object: A,
            ) -> Result<Option<Self>, A::Error> {
                use $crate::wire::lenient_json::{Key, ReadPart};

                let mut fields = Self::default();
                while let Some(Key(key)) = object.next_key()? {
                    $(if *key == *json_object!(@name $field $($json_name)?).as_bytes() {
                        ReadPart(fields.$field) = object.next_value()?;
                        continue;
                    })*
                    object.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(Some(fields))
            }
        }
    };
}
pub(in crate::wire) use json_object;

#[cfg(test)]
mod tests {
    use super::*;

    json_object! {
        #[derive(Debug, PartialEq)]
        struct Outer { kind = "type", inner: Inner<'a>, list: Vec<Option<Inner<'a>>> }
    }

    json_object! {
        #[derive(Debug, PartialEq)]
        struct Inner { x }
    }

    #[test]
    fn the_parts_of_an_object_are_read_whatever_stands_around_them() {
        let json = r#"{"\ud800":[{}],"\u0074ype":"t","inner":{"y":{"x":1},"x":"\ud800"},
            "list":[{"x":1},{"x":null},7,null],"more":"\ud800"}"#;
        let expected = Outer {
            kind: Some(r#""t""#),
            inner: Some(Inner {
                x: Some(r#""\ud800""#),
            }),
            list: Some(vec![
                Some(Inner { x: Some("1") }),
                Some(Inner { x: None }),
                None,
                None,
            ]),
        };
        assert_eq!(parse(json), Some(expected));
    }

    #[test]
    fn a_part_of_another_type_counts_as_missing() {
        for other in ["null", "true", "1", "-1", "1.5", r#""x""#, "[{}]"] {
            let json = format!(r#"{{"inner":{{"x":1}},"inner":{other},"list":{{"x":1}}}}"#);
            assert_eq!(parse(&json), Some(Outer::default()), "{other}");
            assert_eq!(parse::<Outer<'_>>(other), None, "{other}");
        }
        assert_eq!(parse::<Outer<'_>>("{} {}"), None);
        assert_eq!(parse::<Outer<'_>>(r#"{"inner":{"#), None);
    }
}
