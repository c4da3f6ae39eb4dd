/**
 * Where a session's files lie under the root, how its folder is shown, and how time is written. Pure: it makes names, and
 * touches no file. Spec: FI-1..FI-6 in specs/files.md (FL-1, NA-1, DC-4, DC-5).
 */
import { createHash } from "node:crypto"
import { defaultAgent, idPrefix, isName, reservedSession, type Address } from "@daybook/core"

/** The address of a session that is kept in files: one of scope `temp` lives in memory only (SC-2). */
export type KeptAddress = Exclude<Address, { readonly scope: "temp" }>

/** A space that is shared: who may read its files beside its keeper, and which agents may have sessions there. */
export interface SharedSpace {
  /** All, when none are named. */
  readonly agents?: ReadonlyArray<string>
  readonly read: "owner" | "group" | "everyone"
  /** Who sends prompts through a socket of the space; its keeper, if not given. */
  readonly write?: "owner" | "group" | "everyone"
  /** The number of the group that its folders and files have; that of their user, if not given. */
  readonly group?: number
}

export type SharedSpaces = Readonly<Record<string, SharedSpace>>

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

const longestName = 64

/** The text as a name: what a name may not hold becomes a hyphen. A name stays as it is. */
export const nameFrom = (text: string): string => {
  if (isName(text)) return text
  const plain = text.replaceAll(/[^a-zA-Z0-9._+-]/gu, "-")
  const begun = /^[a-zA-Z0-9]/.test(plain) ? plain : `x${plain}`
  return begun.slice(0, longestName).replace(/\.(?=(?:sock|d)$)/, "-")
}

/** The name that a session has without having been given one: its id, or what stands for an id that is no name. */
const sessionNameOf = (sessionID: string): string =>
  isName(sessionID) ? sessionID : `${idPrefix}${sha256(sessionID).slice(0, longestName - idPrefix.length)}`

/**
 * The address that the session is kept under: the given one, else one made of its id and of the agent that it was created
 * for, whatever agent it talks to later. Undefined for one that is not kept.
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

/** The folder of all sessions of an agent or model in one scope, relative to the root. */
export const houseFolder = (house: House): string => {
  const owner = house.scope === "private" ? `home/${house.uid}` : `shared/${house.shared}`
  const name = house.kind === "agent" ? `agent/${house.name}` : `model/${house.name}.d`
  return `${owner}/${name}/session`
}

/** The folder of one session, relative to the root. */
export const sessionFolder = (address: KeptAddress): string => `${houseFolder(address)}/${address.session}`

/** The folder of the index that the session is in, relative to the root. */
export const indexFolder = (house: House): string => `${houseFolder(house)}/${reservedSession}`

/** A folder as the session's agent sees it: below its root from `/` on, else as the host has it. */
export const shownDirectory = (root: string | undefined, directory: string): string => {
  if (root === undefined || root === "/") return directory
  if (directory === root) return "/"
  return directory.startsWith(`${root}/`) ? directory.slice(root.length) : directory
}

/** The name of a folder's file in `by-cwd`: 64 lowercase hex digits of SHA-256 over the folder as it is shown (DC-5). */
export const cwdHash = (cwd: string): string => sha256(cwd)

const firstTime = Date.parse("0000-01-01T00:00:00.000Z")
const lastTime = Date.parse("9999-12-31T23:59:59.999Z")

const minute = 60_000
/** The last minute that was written, from the epoch on, and its text up to the seconds: events come in order of time. */
let last = { minute: Number.NaN, text: "" }

const textOfMinute = (at: number): string => {
  if (last.minute !== at) last = { minute: at, text: new Date(at * minute).toISOString().slice(0, 17) }
  return last.text
}

/** RFC 3339 in UTC with milliseconds (DC-4); what lies outside of the years that it can write becomes the nearest of them. */
export const timeText = (ms: number): string => {
  const at = Math.trunc(Math.min(Math.max(ms, firstTime), lastTime))
  const whole = Math.floor(at / minute)
  const rest = String(at - whole * minute).padStart(5, "0")
  return `${textOfMinute(whole)}${rest.slice(0, 2)}.${rest.slice(2)}Z`
}
