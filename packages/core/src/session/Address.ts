/**
 * Where a session is kept for its clients, beside its id: whose it is, which agent or model it talks to, and its name
 * there. Pure. Spec: AD-1..AD-6 in specs/inbox.md (SC-1, NA-1, NA-2).
 */
import { Schema } from "effect"

const form = /^[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}$/

/** Endings that sockets and folders have beside agents and models. */
const isEnding = (text: string): boolean => text.endsWith(".sock") || text.endsWith(".d")

/** The grammar of names of sessions, agents, shared spaces, runs and clients' ids (NA-1). */
export const isName = (text: string): boolean => form.test(text) && !isEnding(text)

/** What a name has to be, for the person who gave another. */
export const nameRule =
  "1-64 letters, digits, dots, underscores, pluses or hyphens, beginning with a letter or digit, not ending in .sock or .d"

/** A name that a folder, a file or a socket is called by. */
export const Name = Schema.String.pipe(
  // The pattern by itself, so that names can be made up as well as checked.
  Schema.pattern(form, { message: () => `expected ${nameRule}` }),
  Schema.filter((text) => !isEnding(text) || `expected ${nameRule}`)
)

/** Beside the sessions lies their index: no session may have its name (NA-2). */
export const reservedSession = "index"

/** Names that begin so stand for sessions by their ids: they are given, never chosen. */
export const idPrefix = "ses_"

/** The name of a session among those of its agent or model. */
export const SessionName = Name.pipe(
  Schema.filter((text) => text !== reservedSession || `"${reservedSession}" is the name of the index of sessions`)
)

/** The session that is meant when none is named. */
export const defaultSession = "default"

const place = {
  kind: Schema.Literal("agent", "model"),
  /** The agent's or the model's name. */
  name: Name,
  session: SessionName
}
const uid = Schema.NonNegativeInt

/** Private to one user, in a space shared under a name, or in memory for as long as a process and a connection live. */
export const Address = Schema.Union(
  Schema.Struct({ scope: Schema.Literal("private"), uid, ...place }),
  Schema.Struct({ scope: Schema.Literal("shared"), shared: Name, ...place }),
  Schema.Struct({ scope: Schema.Literal("temp"), uid, ...place })
)
export type Address = typeof Address.Type

/** The address as one text, unique like it: no name holds a slash. */
export const addressKey = (address: Address): string =>
  [
    address.scope,
    address.scope === "shared" ? address.shared : address.uid,
    address.kind,
    address.name,
    address.session
  ].join("/")

/** All sessions of an agent or model in one scope. */
export type House = Address extends infer A ? (A extends Address ? Omit<A, "session"> : never) : never

/** What the keys of a house's addresses begin with, and the first text that sorts behind all of them. */
export const houseKeys = (house: House): readonly [from: string, before: string] => {
  const key = [house.scope, house.scope === "shared" ? house.shared : house.uid, house.kind, house.name].join("/")
  // "0" is the character behind "/".
  return [`${key}/`, `${key}0`]
}

/** The address that a key is of, in a form for its schema: a stored key passes it again. */
export const parseAddressKey = (key: string): unknown => {
  const [scope, owner, kind, name, session] = key.split("/")
  return scope === "shared"
    ? { scope, shared: owner, kind, name, session }
    : { scope, uid: Number(owner), kind, name, session }
}
