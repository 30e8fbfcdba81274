/** What is used of it; the package brings no types. */
declare module 'sodium-native' {
  const sodium: {
    /**
     * Ed25519 as RFC 8032 has it (libsodium, ed25519/ref10/open.c). Refuses what OpenSSL refuses, and also keys and points of
     * small order and encodings that are not canonical.
     */
    crypto_sign_verify_detached(
      signature: Uint8Array<ArrayBuffer>,
      message: Uint8Array<ArrayBuffer>,
      publicKey: Uint8Array,
    ): boolean;
  };
  export default sodium;
}
