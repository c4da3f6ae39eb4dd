/** Addresses of sessions: owner, agent or model, and name. Pure. Spec: AD-1..AD-6 (SC-1, NA-1, NA-2). */
import { Schema } from "effect"

const form = /^[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}$/

/** File name endings of sockets and folders beside agents and models. */
const isEnding = (text: string): boolean => text.endsWith(".sock") || text.endsWith(".d")

/** Whether the text is a valid name of a session, agent, shared space or run, or a valid client id (NA-1). */
export const isName = (text: string): boolean => form.test(text) && !isEnding(text)

export const nameRule =
  "1-64 letters, digits, dots, underscores, pluses or hyphens, beginning with a letter or digit, not ending in .sock or .d"

/** A name that folders, files and sockets can have. */
export const Name = Schema.String.pipe(
  // The pattern is a separate filter, so that arbitraries can generate names.
  Schema.pattern(form, { message: () => `expected ${nameRule}` }),
  Schema.filter((text) => !isEnding(text) || `expected ${nameRule}`)
)

/** The sessions' index is stored beside them: no session may have its name (NA-2). */
export const reservedSession = "index"

/** Names with this prefix address sessions by their ids: Daybook assigns them, clients cannot choose them. */
export const idPrefix = "ses_"

/** The name of a session among the sessions of its agent or model. */
export const SessionName = Name.pipe(
  Schema.filter((text) => text !== reservedSession || `"${reservedSession}" is the name of the index of sessions`)
)

/** The session that is used when none is named. */
export const defaultSession = "default"

const house = {
  kind: Schema.Literal("agent", "model"),
  name: Name
}
const place = { ...house, session: SessionName }
const uid = Schema.NonNegativeInt

/** Private to one user, in a named shared space, or in memory for the life of a process and a connection. */
export const Address = Schema.Union(
  Schema.Struct({ scope: Schema.Literal("private"), uid, ...place }),
  Schema.Struct({ scope: Schema.Literal("shared"), shared: Name, ...place }),
  Schema.Struct({ scope: Schema.Literal("temp"), uid, ...place })
)
export type Address = typeof Address.Type

/** The address as one unique text: names contain no slash. */
export const addressKey = (address: Address): string =>
  [
    address.scope,
    address.scope === "shared" ? address.shared : address.uid,
    address.kind,
    address.name,
    address.session
  ].join("/")

/** The address of all sessions of an agent or model in one scope. */
export const House = Schema.Union(
  Schema.Struct({ scope: Schema.Literal("private"), uid, ...house }),
  Schema.Struct({ scope: Schema.Literal("shared"), shared: Name, ...house }),
  Schema.Struct({ scope: Schema.Literal("temp"), uid, ...house })
)
export type House = typeof House.Type

/** The range of a house's address keys: their common prefix, and the first text that sorts after all of them. */
export const houseKeys = (house: House): readonly [from: string, before: string] => {
  const key = [house.scope, house.scope === "shared" ? house.shared : house.uid, house.kind, house.name].join("/")
  // "0" is the next character after "/".
  return [`${key}/`, `${key}0`]
}

/** Splits a key into the encoded form of its address; the schema validates stored keys again. */
export const parseAddressKey = (key: string): unknown => {
  const [scope, owner, kind, name, session] = key.split("/")
  return scope === "shared"
    ? { scope, shared: owner, kind, name, session }
    : { scope, uid: Number(owner), kind, name, session }
}
