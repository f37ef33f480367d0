//! The names of extensions and of the words in them, with their object identifiers.

/// The structures that may contain an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedIn {
    /// Certificates and, with some exceptions, signing requests.
    Certificate,
    /// Certificates only.
    CertificateOnly,
    /// Certificates and revocation lists.
    Both,
    /// Revocation lists.
    List,
    /// Entries of revocation lists.
    Entry,
}

/// An extension that can be used in arguments.
pub struct Named {
    /// Salt's name.
    pub name: &'static str,
    /// The object identifier; empty for extensions that are not implemented.
    pub oid: &'static str,
    /// The structures that may contain it.
    pub place: AllowedIn,
}

macro_rules! named {
    ($($name:literal $oid:literal $place:ident),* $(,)?) => {
        &[$(Named { name: $name, oid: $oid, place: AllowedIn::$place }),*]
    };
}

/// All extensions, in their order in certificates.
pub(crate) const KNOWN: &[Named] = named! {
    "basicConstraints" "2.5.29.19" Certificate,
    "keyUsage" "2.5.29.15" Certificate,
    "extendedKeyUsage" "2.5.29.37" Certificate,
    "subjectKeyIdentifier" "2.5.29.14" Certificate,
    "authorityKeyIdentifier" "2.5.29.35" Both,
    "issuerAltName" "2.5.29.18" Both,
    "authorityInfoAccess" "1.3.6.1.5.5.7.1.1" Both,
    "subjectAltName" "2.5.29.17" Certificate,
    "crlDistributionPoints" "2.5.29.31" CertificateOnly,
    "issuingDistributionPoint" "2.5.29.28" List,
    "certificatePolicies" "2.5.29.32" Certificate,
    "policyConstraints" "2.5.29.36" Certificate,
    "inhibitAnyPolicy" "2.5.29.54" Certificate,
    "nameConstraints" "2.5.29.30" Certificate,
    "noCheck" "1.3.6.1.5.5.7.48.1.5" Certificate,
    "tlsfeature" "1.3.6.1.5.5.7.1.24" Certificate,
    "nsComment" "" Certificate,
    "nsCertType" "" Certificate,
    "cRLNumber" "2.5.29.20" List,
    "deltaCRLIndicator" "2.5.29.27" List,
    "freshestCRL" "2.5.29.46" List,
    "certificateIssuer" "2.5.29.29" Entry,
    "CRLReason" "2.5.29.21" Entry,
    "invalidityDate" "2.5.29.24" Entry,
};

/// The long names of attributes and extensions in old files, each with the name that Salt prefers.
pub const LONG_NAMES: [(&str, &str); 32] = [
    ("commonName", "CN"),
    ("localityName", "L"),
    ("stateOrProvinceName", "ST"),
    ("organizationName", "O"),
    ("organizationUnitName", "OU"),
    ("givenName", "GN"),
    ("surname", "SN"),
    ("Email", "MAIL"),
    ("emailAddress", "MAIL"),
    ("serialNumber", "SERIALNUMBER"),
    ("X509v3 Basic Constraints", "basicConstraints"),
    ("X509v3 Key Usage", "keyUsage"),
    ("X509v3 Extended Key Usage", "extendedKeyUsage"),
    ("X509v3 Subject Key Identifier", "subjectKeyIdentifier"),
    ("X509v3 Authority Key Identifier", "authorityKeyIdentifier"),
    ("X509v3 Issuer Alternative Name", "issuerAltName"),
    ("issuserAltName", "issuerAltName"),
    ("Authority Information Access", "authorityInfoAccess"),
    ("X509v3 Subject Alternative Name", "subjectAltName"),
    ("X509v3 CRL Distribution Points", "crlDistributionPoints"),
    ("X509v3 Issuing Distribution Point", "issuingDistributionPoint"),
    ("X509v3 Certificate Policies", "certificatePolicies"),
    ("X509v3 Policy Constraints", "policyConstraints"),
    ("X509v3 Inhibit Any Policy", "inhibitAnyPolicy"),
    ("X509v3 Name Constraints", "nameConstraints"),
    ("OCSP No Check", "noCheck"),
    ("TLS Feature", "tlsfeature"),
    ("Netscape Comment", "nsComment"),
    ("Netscape Certificate Type", "nsCertType"),
    ("X509v3 CRLNumber", "cRLNumber"),
    ("X509v3 Delta CRL Indicator", "deltaCRLIndicator"),
    ("x509v3 Freshest CRL", "freshestCRL"),
];

pub(crate) const USAGES: [(&str, &str); 13] = [
    ("serverAuth", "1.3.6.1.5.5.7.3.1"),
    ("clientAuth", "1.3.6.1.5.5.7.3.2"),
    ("codeSigning", "1.3.6.1.5.5.7.3.3"),
    ("emailProtection", "1.3.6.1.5.5.7.3.4"),
    ("timeStamping", "1.3.6.1.5.5.7.3.8"),
    ("OCSPSigning", "1.3.6.1.5.5.7.3.9"),
    ("msSmartcardLogin", "1.3.6.1.4.1.311.20.2.2"),
    ("pkInitKDC", "1.3.6.1.5.2.3.5"),
    ("ipsecIKE", "1.3.6.1.5.5.7.3.17"),
    ("msCodeInd", "1.3.6.1.4.1.311.2.1.21"),
    ("msCodeCom", "1.3.6.1.4.1.311.2.1.22"),
    ("msCTLSign", "1.3.6.1.4.1.311.10.3.1"),
    ("msEFS", "1.3.6.1.4.1.311.10.3.4"),
];
pub(crate) const ACCESS: [(&str, &str); 3] =
    [("OCSP", "1.3.6.1.5.5.7.48.1"), ("caIssuers", "1.3.6.1.5.5.7.48.2"), ("caRepository", "1.3.6.1.5.5.7.48.5")];
pub(crate) const KEY_USAGES: [&str; 9] = [
    "digitalSignature",
    "nonRepudiation",
    "keyEncipherment",
    "dataEncipherment",
    "keyAgreement",
    "keyCertSign",
    "cRLSign",
    "encipherOnly",
    "decipherOnly",
];
pub(crate) const REASONS: [(&str, u64); 10] = [
    ("unspecified", 0),
    ("keyCompromise", 1),
    ("cACompromise", 2),
    ("affiliationChanged", 3),
    ("superseded", 4),
    ("cessationOfOperation", 5),
    ("certificateHold", 6),
    ("removeFromCRL", 8),
    ("privilegeWithdrawn", 9),
    ("aACompromise", 10),
];

impl AllowedIn {
    /// Whether certificates may contain the extension.
    pub fn is_of_certificates(self) -> bool {
        matches!(self, AllowedIn::Certificate | AllowedIn::CertificateOnly | AllowedIn::Both)
    }
}

/// Returns all extensions, in their order in certificates.
pub fn known() -> &'static [Named] {
    KNOWN
}

/// Returns the extension with this name of Salt.
pub fn named(name: &str) -> Option<&'static Named> {
    KNOWN.iter().find(|entry| entry.name == name)
}
