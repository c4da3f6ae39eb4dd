/** Renders the single-value files of a session's folder. Pure. Spec: FI-7..FI-18 (FL-3, DC-3, DC-4, IX-1..IX-5). */
import { modelText } from "@daybook/log/domain/Values"
import { isStored, type State, type Text } from "@daybook/transcript/Fold"
import { timeText } from "@daybook/transcript/row/Rows"
import { cwdHash, type KeptAddress, type Meta } from "../layout/Layout.ts"

// Renders the index of a house: a hint for clients, derived from its sessions alone.

/** A session's line of the index. Positions are global. */
export interface IndexEntry {
  readonly session: string
  /** The folder as the agent sees it. */
  readonly cwd: string
  readonly updatedAtMs: number
  /** The position of its last event. */
  readonly position: number
  readonly createdPosition: number
  /** The position of the event that began its last run. */
  readonly runStartedPosition?: number | undefined
}

export const entryOf = (fold: State, session: string): IndexEntry => ({
  session,
  cwd: fold.cwd,
  updatedAtMs: fold.updatedAtMs,
  position: fold.position,
  createdPosition: fold.createdPosition,
  ...(fold.runStartedPosition === undefined ? {} : { runStartedPosition: fold.runStartedPosition })
})

const byName = (a: IndexEntry, b: IndexEntry): number => (a.session < b.session ? -1 : a.session > b.session ? 1 : 0)

const newestFirst = (a: IndexEntry, b: IndexEntry): number =>
  b.updatedAtMs - a.updatedAtMs || b.position - a.position || byName(a, b)

/** Orders by the latest start of a run, then sessions without a run by the latest creation. */
const currentFirst = (a: IndexEntry, b: IndexEntry): number =>
  (b.runStartedPosition ?? -1) - (a.runStartedPosition ?? -1) || b.createdPosition - a.createdPosition || byName(a, b)

/** Name and content of each index file; empty without a session. */
export const indexFiles = (entries: ReadonlyArray<IndexEntry>): ReadonlyMap<string, string> => {
  const files = new Map<string, string>()
  const list = entries.toSorted(newestFirst)
  if (list.length > 0) files.set("list", list.map(({ session }) => `${session}\n`).join(""))
  for (const { cwd, session } of entries.toSorted(currentFirst)) {
    if (!files.has("current")) files.set("current", `${session}\n`)
    const name = `by-cwd/${cwdHash(cwd)}`
    if (!files.has(name)) files.set(name, `${session}\n`)
  }
  return files
}

/** The text with a newline; half a surrogate pair, which UTF-8 cannot encode, becomes U+FFFD. */
const line = (text: string): string => `${text.replaceAll(/\p{Surrogate}/gu, "\uFFFD")}\n`

const metaOf = (state: State, address: KeptAddress): Meta => {
  const model = state.model ?? state.lastStep?.model
  const { input, output, reasoning } = state.tokens
  return {
    version: 1,
    session_id: state.sessionID,
    scope: address.scope,
    ...(address.scope === "shared" ? { shared: address.shared } : {}),
    kind: address.kind,
    name: address.name,
    session: address.session,
    ...(state.title === undefined ? {} : { title: state.title }),
    agent: state.agent,
    ...(model === undefined ? {} : { model: modelText(model) }),
    ...(state.parentID === undefined ? {} : { parent_id: state.parentID }),
    ...(state.source === undefined ? {} : { source: state.source }),
    ...(state.cronJobID === undefined ? {} : { cron_job_id: state.cronJobID }),
    ...(state.instructions === undefined ? {} : { instructions: state.instructions }),
    ...(state.lastStatus === undefined ? {} : { last_status: state.lastStatus }),
    ...(state.lastRun === undefined ? {} : { last_run: state.lastRun }),
    ...(state.clientID === undefined ? {} : { client_id: state.clientID }),
    cost_usd: state.cost,
    tokens: { input, output, reasoning },
    seq: state.seq
  }
}

/** The names of all value files, including those that a session may not have yet. */
export const valueNames: ReadonlySet<string> = new Set([
  "latest.md",
  "cwd",
  "created_at",
  "meta.json",
  "updated_at",
  "state"
])

/** The content of `latest.md`. `stored` supplies it if a text is only referenced. */
const latestFile = <A>(latest: ReadonlyArray<Text>, stored: (latest: ReadonlyArray<Text>) => A): string | A =>
  latest.some(isStored) ? stored(latest) : line(latest.join(""))

/** Name and content of each value file, in write order. `stored` supplies a long answer. */
export const valueFiles = <A>(
  state: State,
  address: KeptAddress,
  stored: (latest: ReadonlyArray<Text>) => A
): ReadonlyMap<string, string | A> =>
  new Map<string, string | A>([
    ...(state.latest === undefined ? [] : [["latest.md", latestFile(state.latest, stored)] as const]),
    ["cwd", line(state.cwd)],
    ["created_at", line(timeText(state.createdAtMs))],
    ["meta.json", line(JSON.stringify(metaOf(state, address)))],
    ["updated_at", line(timeText(state.updatedAtMs))],
    // Last: a reader that sees the end of a run in it finds the other files up to date.
    ["state", line(state.word)]
  ])
