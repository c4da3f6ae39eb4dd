/**
 * Computes where a session's files are under the root, how its folder is shown, and how a time is written. Pure;
 * touches no file. Spec: FI-1..FI-6 in specs/files.md (FL-1, NA-1, DC-4, DC-5).
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
  /** Who may send prompts through a socket of the space; by default only its keeper. */
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

/**
 * The folder as the agent sees it: its path below the root, `/` for the root itself. Without a root, or outside of it,
 * the host path.
 */
export const shownDirectory = (root: string | undefined, directory: string): string => {
  if (root === undefined || root === "/") return directory
  if (directory === root) return "/"
  return directory.startsWith(`${root}/`) ? directory.slice(root.length) : directory
}

/** The name of a folder's file in `by-cwd`: the SHA-256 of the shown folder in 64 lowercase hex digits (DC-5). */
export const cwdHash = (cwd: string): string => sha256(cwd)

const firstTime = Date.parse("0000-01-01T00:00:00.000Z")
const lastTime = Date.parse("9999-12-31T23:59:59.999Z")

const minute = 60_000
/** The last minute formatted, and its text up to the seconds. Successive events mostly share a minute. */
let last = { minute: Number.NaN, text: "" }

const textOfMinute = (at: number): string => {
  if (last.minute !== at) last = { minute: at, text: new Date(at * minute).toISOString().slice(0, 17) }
  return last.text
}

/** RFC 3339 in UTC with milliseconds (DC-4). Times outside the years 0000 to 9999 are clamped. */
export const timeText = (ms: number): string => {
  const at = Math.trunc(Math.min(Math.max(ms, firstTime), lastTime))
  const whole = Math.floor(at / minute)
  const rest = String(at - whole * minute).padStart(5, "0")
  return `${textOfMinute(whole)}${rest.slice(0, 2)}.${rest.slice(2)}Z`
}
