/** Made-up secrets, each in the form of a real one. Built from parts so that no scanner of the repository finds them. */

const letters = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9dE2fG4hJ6"
const hex = "3f9a1c7e5b2d8046".repeat(3)

/** Secrets by the kind that finds them. */
export const secrets: Readonly<Record<string, ReadonlyArray<string>>> = {
  token: [
    `sk-ant-api03-${letters}`,
    `sk-proj-${letters}`,
    `AIza${letters.slice(0, 35)}`,
    `gsk_${letters}`,
    `hf_${letters.slice(0, 34)}`,
    `AKIA${"Q7RS2TUVW3XY4Z5A"}`,
    `ya29.${letters}`,
    `ghp_${letters.slice(0, 36)}`,
    `github_pat_${letters}`,
    `glpat-${letters.slice(0, 20)}`,
    `xoxb-${"123456789012"}-${letters.slice(0, 24)}`,
    `SG.${letters.slice(0, 22)}.${letters}`,
    `sk_live_${letters.slice(0, 24)}`,
    `npm_${letters.slice(0, 36)}`,
    `hvs.${letters}`,
    `dop_v1_${hex}`,
    `eyJ${letters.slice(0, 20)}.eyJ${letters.slice(0, 24)}.${letters}`
  ],
  "private key": [
    `-----BEGIN RSA ${"PRIVATE KEY"}-----\nProc-Type: 4,ENCRYPTED\n\n${letters}\n${letters}==\n-----END RSA PRIVATE KEY-----`,
    `-----BEGIN OPENSSH ${"PRIVATE KEY"}-----\n${letters}\n-----END OPENSSH PRIVATE KEY-----`
  ],
  "random text": [letters.slice(0, 32)]
}

/** Secrets within text that stays: before, secret, after. */
export const inPlace: ReadonlyArray<readonly [kind: string, before: string, secret: string, after: string]> = [
  ["URL credential", "git clone https://user:", "hunter2", "@example.test/a.git"],
  ["URL credential", "https://example.test/?a=1&access_token=", "abc123def456", "&b=2"],
  ["header", "curl -H 'Authorization: Bearer ", "abc.def-123456", "' https://example.test"],
  ["header", 'X-Api-Key: "', "q1w2e3r4t5", '"'],
  ["header", "Set-Cookie: ", "session=topsecret; Path=/", "\nnext: line"],
  ["assignment", 'const db = { password: "', "letmein", '" }'],
  ["assignment", "export API_KEY=", "hunter22xyz", "\n"],
  ["assignment", "mysql --password=", "hunter2", " -u root"],
  ["assignment", "psql --password ", "hunter2", " -u root"],
  ["assignment", "host=x password=", "letmein", " user=me"],
  ["assignment", "DB_PASS=", "swordfish", "\n"],
  ["header", "Authorization: Bearer ", "abcdefghijkl", "\n"],
  ["assignment", 'aws_secret_access_key = "', "wJalrXUtnFEMI7K7MDENG", '"']
]

/** Text that looks a little like secrets, and is none. */
export const harmless: ReadonlyArray<string> = [
  "session ses_01JDABCDEFGHJKMNPQRSTVWXYZ, message msg_01JDABCDEFGHJKMNPQRSTVWXYZ, call toolu_01A2b3C4d5E6f7G8h9J0k1L2",
  `commit ${hex.slice(0, 40)}, sha256 ${hex.slice(0, 64)}, id 0b54f3a1-7c2d-4e8f-9a6b-1c2d3e4f5a6b`,
  "packages/log/src/support/Redaction2.ts imports ReadableStreamDefaultController and Base64UrlFromString",
  "const token = getToken(); function f(token: string, password: string) { return token.length }",
  "connect(password=password, passwd=None, user=u); password=$PASSWORD; db_pwd=/home/me; --password -v; OLDPWD=/srv/app",
  "Authorization: Bearer $TOKEN, Authorization: Bearer <token>, password=getpass.getpass(), --password-file x",
  "Bearer tokens and basic authentication; Authorization: required for all requests. The author's key-value store.",
  "The quick brown fox\njumps over 13 lazy dogs\nand 42 others.\n\n- one\n- two",
  '{"type":"object","properties":{"token":{"type":"string"}},"required":["token"]}'
]
