//! How descriptions of answers are written: a struct that nobody makes, for the document of the API alone.

/// Fields that are always there, and fields that may be.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident as $public:ident {
        $($(#[$must_doc:meta])* $must:ident: $must_type:ty,)*
        ;
        $($(#[$may_doc:meta])* $may:ident: $may_type:ty,)*
    })*) => {
        $($(#[$doc])*
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $public)]
        pub(super) struct $name {
            $($(#[$must_doc])* $must: $must_type,)*
            $($(#[$may_doc])* #[schema(required = false)] $may: $may_type,)*
        })*
    };
}
pub(super) use shapes;
