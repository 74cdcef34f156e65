//! The methods that the plan's .proto files define, looked up by name.

use std::path::{Path, PathBuf};

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};

use crate::grpc::template::unknown_field;

/// What was found in the .proto files.
#[derive(Debug, Default)]
pub struct Methods {
    pool: DescriptorPool,
}

impl Methods {
    /// Compiles `protos`. What they import is looked up in `includes`, and in the directory of a
    /// file that is in none of these. Err says which file does not compile and why.
    pub fn compile(protos: &[PathBuf], includes: &[PathBuf]) -> Result<Self, String> {
        let mut includes = includes.to_vec();
        for proto in protos {
            if !includes.iter().any(|folder| proto.starts_with(folder)) {
                includes.push(match proto.parent() {
                    Some(folder) if folder != Path::new("") => folder.to_owned(),
                    _ => PathBuf::from("."),
                });
            }
        }
        let compiled = protox::Compiler::new(&includes).and_then(|mut compiler| {
            compiler.open_files(protos)?;
            Ok(compiler.descriptor_pool())
        });
        // Its `Debug` has the file's name and the line.
        let pool = compiled.map_err(|error| format!("`protos`: {error:?}"))?;
        Ok(Methods { pool })
    }

    /// A unary method; Err says what there is instead.
    pub fn unary(&self, service: &str, method: &str) -> Result<MethodDescriptor, String> {
        let Some(found) = self.pool.get_service_by_name(service) else {
            let known: Vec<String> = self
                .pool
                .services()
                .map(|it| it.full_name().to_owned())
                .collect();
            return Err(if known.is_empty() {
                format!(
                    "no service {service}: the header's `protos` define none. Name the .proto file \
                     that has it there"
                )
            } else {
                format!(
                    "no service {service}: the header's `protos` define {}",
                    known.join(", ")
                )
            });
        };
        let Some(found) = found.methods().find(|it| it.name() == method) else {
            let known: Vec<String> = found.methods().map(|it| it.name().to_owned()).collect();
            return Err(format!(
                "no method {method} in {service}: it has {}",
                known.join(", ")
            ));
        };
        if found.is_client_streaming() || found.is_server_streaming() {
            let streams = match (found.is_client_streaming(), found.is_server_streaming()) {
                (true, true) => "both sides stream",
                (true, false) => "the client streams",
                _ => "the server streams",
            };
            return Err(format!(
                "{service}/{method} cannot be measured: {streams}, and a sample is one message and \
                 its one answer"
            ));
        }
        Ok(found)
    }
}

/// The field of a response that holds an object: its names, joined by dots, lead to it.
pub fn object_field(
    response: &MessageDescriptor,
    path: &str,
) -> Result<Vec<FieldDescriptor>, String> {
    let mut fields = Vec::new();
    let mut message = Some(response.clone());
    let mut at = String::from("response_object");
    for name in path.split('.') {
        let Some(descriptor) = message else {
            return Err(format!("`{at}` is no message, so that it has no `{name}`"));
        };
        at = format!("{at}.{name}");
        let field = descriptor
            .get_field_by_name(name)
            .or_else(|| descriptor.get_field_by_json_name(name))
            .ok_or_else(|| unknown_field(&descriptor, &at))?;
        if field.is_list() || field.is_map() {
            return Err(format!(
                "`{at}` is repeated: which one would be the object?"
            ));
        }
        message = match field.kind() {
            Kind::Message(descriptor) => Some(descriptor),
            _ => None,
        };
        fields.push(field);
    }
    match fields.last().map(FieldDescriptor::kind) {
        Some(Kind::Bytes) => Ok(fields),
        _ => Err(format!("`{at}` is no bytes field, which an object is")),
    }
}
