/** Renders the single-value files of a session's folder from the fold. Pure. Spec: FI-7..FI-13 (FL-3, DC-3, DC-4). */
import { modelText } from "@daybook/log/domain/Values"
import { isStored, type State, type Text } from "@daybook/transcript/Fold"
import { timeText } from "@daybook/transcript/row/Rows"
import type { KeptAddress } from "../layout/Layout.ts"
import type { Meta } from "../layout/Meta.ts"

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
export const latestFile = <A>(latest: ReadonlyArray<Text>, stored: (latest: ReadonlyArray<Text>) => A): string | A =>
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
