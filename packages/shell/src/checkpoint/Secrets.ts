/** Names of files and folders that no checkpoint holds, whatever a `.gitignore` says. Pure. Spec: SL-157. */

/** Patterns as in `.gitignore`, for names at any depth. Git never looks into `.git`; it refuses its other spellings. */
export const secretNames: ReadonlyArray<string> = (
  ".[gG][iI][tT] .ssh .gnupg .aws .azure .gcloud .kube .netrc _netrc .cache .env* .git-credentials .pgpass .npmrc .pypirc " +
  ".vault-token id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p12 *.pfx *.ppk *.jks *.keystore *.kdbx"
).split(" ")
