/**
 * Computes the paths of sessions below the root, and checks their parts. Pure. The grammar and the folders are those of
 * `@daybook/core` and `@daybook/files`, repeated here because those load Effect; a test compares them.
 * Spec: CL-102 in specs/cli.md (NA-1, NA-2, DC-5).
 */
import { createHash } from "node:crypto"

/** The grammar of names (NA-1). */
export const isName = (text: string): boolean =>
  /^[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}$/.test(text) && !/\.(sock|d)$/.test(text)

/** Whether the text is a session's name: `index` is the folder beside the sessions (NA-2). */
export const isSessionName = (text: string): boolean => text !== "index" && isName(text)

/** The rule for names, for error messages. */
export const nameRule =
  "1-64 letters, digits, dots, underscores, pluses or hyphens, beginning with a letter or digit, not ending in .sock or .d"

/** The session used if none is named and none is current. */
export const defaultSession = "default"

/** An agent's or model's sessions of one owner. */
export interface House {
  readonly kind: "agent" | "model"
  readonly name: string
  /** A user or a shared space. */
  readonly owner: { readonly uid: number } | { readonly shared: string }
}

/** The segments of the folder that holds the sessions and their index, below the root. */
export const houseSegments = ({ kind, name, owner }: House): ReadonlyArray<string> => [
  ...("uid" in owner ? ["home", String(owner.uid)] : ["shared", owner.shared]),
  kind,
  kind === "agent" ? name : `${name}.d`,
  "session"
]

/** For a sentence: `agent coder`, `model m1 in the shared space team`. */
export const houseWords = ({ kind, name, owner }: House): string =>
  `${kind} ${name} ${"uid" in owner ? `of user ${owner.uid}` : `in the shared space ${owner.shared}`}`

/**
 * A session's working folder in canonical form: absolute, without empty and single-dot segments and without a final slash;
 * `undefined` if the text is not such a path.
 */
export const canonicalCwd = (text: string): string | undefined => {
  const segments = text.split("/").filter((segment) => segment !== "" && segment !== ".")
  return text.startsWith("/") && !text.includes("\0") && !segments.includes("..") ? `/${segments.join("/")}` : undefined
}

/** The name of a working folder's file in the index. */
export const cwdHash = (cwd: string): string => createHash("sha256").update(cwd, "utf8").digest("hex")
