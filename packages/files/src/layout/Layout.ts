/**
 * Computes where a session's files are under the root. Pure; touches no file. Spec: FI-1..FI-4 in specs/files.md (FL-1,
 * NA-1, DC-5).
 */
import { createHash } from "node:crypto"
import { type Address, idPrefix, isName, reservedSession } from "@daybook/log/domain/Address"
import { defaultAgent } from "@daybook/log/domain/Values"

/** The address of a session that has files; sessions of scope `temp` have none (SC-2). */
export type KeptAddress = Exclude<Address, { readonly scope: "temp" }>

/** A shared space: who may read its files and send to it, and which agents may have sessions there. */
export interface SharedSpace {
  /** The agents allowed in the space; by default all. */
  readonly agents?: ReadonlyArray<string>
  readonly read: "owner" | "group" | "everyone"
  /** Who may send prompts through a socket of the space; by default only its owner. */
  readonly write?: "owner" | "group" | "everyone"
  /** The group id of its folders and files; by default the group of their user. */
  readonly group?: number
}

export type SharedSpaces = Readonly<Record<string, SharedSpace>>

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

const longestName = 64

/** The text as a valid name: invalid characters become hyphens. A valid name is unchanged. */
export const nameFrom = (text: string): string => {
  if (isName(text)) return text
  const plain = text.replaceAll(/[^a-zA-Z0-9._+-]/gu, "-")
  const begun = /^[a-zA-Z0-9]/.test(plain) ? plain : `x${plain}`
  return begun.slice(0, longestName).replace(/\.(?=(?:sock|d)$)/, "-")
}

/** The name of a session without an address: its id, or a hash of an id that is not a valid name. */
const sessionNameOf = (sessionID: string): string =>
  isName(sessionID) ? sessionID : `${idPrefix}${sha256(sessionID).slice(0, longestName - idPrefix.length)}`

/**
 * The address that the session's files have: the given one, or else one made of its id and the agent that it was
 * created for. A later change of agent does not affect it. Undefined for a temp session.
 */
export const addressOf = (
  { agent, id }: { readonly id: string; readonly agent?: string | undefined },
  given: Address | undefined,
  uid: number
): KeptAddress | undefined => {
  if (given !== undefined) return given.scope === "temp" ? undefined : given
  return { scope: "private", uid, kind: "agent", name: nameFrom(agent ?? defaultAgent), session: sessionNameOf(id) }
}

type House =
  | { readonly scope: "private"; readonly uid: number; readonly kind: "agent" | "model"; readonly name: string }
  | { readonly scope: "shared"; readonly shared: string; readonly kind: "agent" | "model"; readonly name: string }

/** The house folder, relative to the root. */
export const houseFolder = (house: House): string => {
  const owner = house.scope === "private" ? `home/${house.uid}` : `shared/${house.shared}`
  const name = house.kind === "agent" ? `agent/${house.name}` : `model/${house.name}.d`
  return `${owner}/${name}/session`
}

/** The session's folder, relative to the root. */
export const sessionFolder = (address: KeptAddress): string => `${houseFolder(address)}/${address.session}`

/** The house's index folder, relative to the root. */
export const indexFolder = (house: House): string => `${houseFolder(house)}/${reservedSession}`

/** The name of a folder's file in `by-cwd`: the SHA-256 of the shown folder in 64 lowercase hex digits (DC-5). */
export const cwdHash = (cwd: string): string => sha256(cwd)
