/**
 * Computes where a session's files are under the root. Pure; touches no file. Reasons: decision 0018. Spec: FI-1..FI-4,
 * FI-12, FI-60, FI-92, FI-93 in specs/files.md (FL-1, NA-1, DC-5).
 */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import { type Address, idPrefix, isName, reservedSession } from "@daybook/log/domain/Address"
import { defaultAgent } from "@daybook/log/domain/Values"
import { RunID } from "@daybook/transcript/row/Rows"
import { optional } from "@daybook/log/support/Optional"

// Defines `meta.json` of a session's folder.

/** `meta.json`, for people and for clients' lists. No program logic depends on it. */
export const Meta = Schema.Struct({
  /** The version of all files in the session's folder. */
  version: Schema.Literal(1),
  session_id: Schema.String,
  scope: Schema.Literal("private", "shared"),
  shared: optional(Schema.String),
  kind: Schema.Literal("agent", "model"),
  name: Schema.String,
  session: Schema.String,
  title: optional(Schema.String),
  /** The session's current agent. */
  agent: Schema.String,
  model: optional(Schema.String),
  parent_id: optional(Schema.String),
  /** What began the session; absent: a person or a program. */
  source: optional(Schema.Literal("interactive", "cron")),
  cron_job_id: optional(Schema.String),
  /** Instructions of this session alone. */
  instructions: optional(Schema.String),
  /** How the last run ended. */
  last_status: optional(Schema.Literal("ok", "error", "cancelled")),
  last_run: optional(RunID),
  client_id: optional(Schema.String),
  cost_usd: Schema.Finite,
  tokens: Schema.Struct({ input: Schema.Finite, output: Schema.Finite, reasoning: Schema.Finite }),
  /** The last event that these files reflect. */
  seq: Schema.Int
})
export type Meta = typeof Meta.Type

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

// Decides the permissions below the root, from the configuration of shared spaces and the mode of the root.

/** The permissions of paths below a root. Paths are relative to it. */
export interface Modes {
  readonly folder: (path: string) => number
  readonly file: (path: string) => number
  /** The group of a folder; undefined for the user's own group. */
  readonly group: (path: string) => number | undefined
  /** Whether other users must be able to traverse the root. */
  readonly passable: boolean
  /** Whether other users have folders in the root. */
  readonly common: boolean
}

const own = { folder: 0o700, file: 0o600 }
const byReader = {
  owner: own,
  group: { folder: 0o750, file: 0o640 },
  everyone: { folder: 0o755, file: 0o644 }
}
/** New entries of the folder inherit its group. */
const setgid = 0o2000

/** Whether the file has the expected permissions and group. */
export const isPermitted = (
  { file, group }: Modes,
  path: string,
  { gid, mode }: { readonly mode: number; readonly gid: number }
): boolean => mode === file(path) && (group(path) ?? gid) === gid

/** Whether a root of this mode is common: others can write into it, and the sticky bit protects each user's folders. */
export const isCommon = (mode: number): boolean => (mode & 0o1000) !== 0 && (mode & 0o022) !== 0

/** Private files are the owner's alone; a shared space is as open as its configuration. `root`: the root's mode. */
export const modesOf = (shared: SharedSpaces = {}, root = 0o700): Modes => {
  const passable = Object.values(shared).some(({ read }) => read !== "owner")
  const spaceOf = (path: string) => {
    const [top, space] = path.split("/")
    return top === "shared" && space !== undefined && Object.hasOwn(shared, space) ? shared[space] : undefined
  }
  const group = (path: string) => {
    const space = spaceOf(path)
    return space === undefined || space.read === "owner" ? undefined : space.group
  }
  const folder = (path: string) => {
    if (!path.includes("/")) return isCommon(root) ? root & 0o7777 : path === "shared" && passable ? 0o711 : 0o700
    const mode = byReader[spaceOf(path)?.read ?? "owner"].folder
    return group(path) === undefined ? mode : mode | setgid
  }
  return {
    folder,
    file: (path) => byReader[spaceOf(path)?.read ?? "owner"].file,
    group,
    passable,
    common: isCommon(root)
  }
}
