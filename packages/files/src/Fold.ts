/**
 * Folds a session's events into its files: the rows that each event adds to `messages.jsonl` and `events.jsonl`, and
 * the single values after it. Pure, total over the event types, and independent of how events are batched. Spec:
 * FI-20..FI-39 in specs/files.md (FL-4..FL-8).
 */
import type { Prompt, Tokens } from "@daybook/log/domain/Values"
import type { DurableType, SessionEvent } from "@daybook/log/events/SessionEvents"
import { type Blob, promptContent } from "./fold/Blocks.ts"
import { codeOf } from "./fold/ErrorCode.ts"
import { blocksOf, type FoldedRow, ofRun, type Out, place, set } from "./fold/Out.ts"
import * as Runs from "./fold/Runs.ts"
import { initial, type State } from "./fold/State.ts"
import * as Steps from "./fold/Steps.ts"
import { shownDirectory, timeText } from "./Layout.ts"
import type { ContentBlock, EventRow } from "./Rows.ts"

export type { Blob } from "./fold/Blocks.ts"
export { codeOf } from "./fold/ErrorCode.ts"
export { rowsPerEvent, type FoldedRow } from "./fold/Out.ts"
export { clip } from "./fold/Runs.ts"
export { Checkpoint, fromCheckpoint, initial, isQuiet, toCheckpoint, type State } from "./fold/State.ts"
export { modelText, textLimit } from "./fold/Steps.ts"
export { isStored, longestHeld, type StoredText, type Text } from "./fold/Texts.ts"

/** The result of one event. */
export interface Evolved {
  readonly state: State
  /** Rows added to `messages.jsonl`. */
  readonly messages: ReadonlyArray<FoldedRow>
  /** Rows added to `events.jsonl`, at most `rowsPerEvent`. */
  readonly events: ReadonlyArray<EventRow>
  /** Blobs that these or later rows name; a blob may appear again. */
  readonly blobs: ReadonlyArray<Blob>
}

type Change = Extract<EventRow, { readonly type: "state" }>["change"]
const changed = (out: Out, change: Change, value?: string): void => {
  out.events.push({ type: "state", ...place(out), ...ofRun(out), change, ...(value === undefined ? {} : { value }) })
}

/** Adds, and clamps the sum to numbers that JSON can hold. */
const sum = (a: number, b: number): number => Math.min(Math.max(a + b, -Number.MAX_VALUE), Number.MAX_VALUE)

const spend = (
  out: Out,
  { cost = 0, tokens }: { readonly cost?: number | undefined; readonly tokens?: Tokens | undefined }
): void => {
  const before = out.state.tokens
  set(out, {
    cost: sum(out.state.cost, cost),
    ...(tokens === undefined
      ? {}
      : {
          tokens: {
            input: sum(before.input, tokens.input),
            output: sum(before.output, tokens.output),
            reasoning: sum(before.reasoning, tokens.reasoning),
            cache: {
              read: sum(before.cache.read, tokens.cache.read),
              write: sum(before.cache.write, tokens.cache.write)
            }
          }
        })
  })
}

const moved = (out: Out, change: { readonly root?: string; readonly directory?: string }): void => {
  set(out, change)
  set(out, { cwd: shownDirectory(out.state.root, out.state.directory) })
}

/** Adds a user or system row with these blocks. */
const say = (out: Out, role: "user" | "system", id: string, content: ReadonlyArray<ContentBlock>): void => {
  out.messages.push({ role, id, time: timeText(out.event.created), ...ofRun(out), content })
}

/** Keeps a prompt's content until its promotion; only the admission carries it. */
const admitted = (out: Out, id: string, prompt: Prompt): void => {
  set(out, { waiting: [...out.state.waiting, { id, content: blocksOf(out, promptContent(prompt)) }] })
}

const forget = (out: Out, id: string): void => {
  if (out.state.waiting.some((waiting) => waiting.id === id))
    set(out, { waiting: out.state.waiting.filter((waiting) => waiting.id !== id) })
}

const visible = (out: Out, id: string, prompt: Prompt): void => {
  const waited = out.state.waiting.find((waiting) => waiting.id === id)
  forget(out, id)
  if (prompt.system !== undefined && prompt.system !== "")
    say(out, "system", `${id}.system`, [{ type: "text", text: prompt.system }])
  say(out, "user", id, waited?.content ?? blocksOf(out, promptContent(prompt)))
}

const error = (out: Out, type: string, message: string): void => {
  out.events.push({ type: "error", ...place(out), ...ofRun(out), code: codeOf(type), message, recoverable: true })
}

const fold = (out: Out, event: SessionEvent): void => {
  switch (event.type) {
    case "session.created": {
      const { agent, location, model, parentID, title } = event.data
      set(out, {
        sessionID: event.sessionID,
        createdAtMs: event.created,
        createdPosition: event.position,
        updatedAtMs: event.created,
        ...(agent === undefined ? {} : { agent, firstAgent: agent }),
        ...(model === undefined ? {} : { model }),
        ...(title === undefined ? {} : { title }),
        ...(parentID === undefined ? {} : { parentID })
      })
      moved(out, { directory: location.directory })
      return changed(out, "created")
    }
    case "session.next.addressed": {
      const { address, root } = event.data
      set(out, { address })
      return moved(out, root === undefined ? {} : { root })
    }
    case "session.next.agent.switched":
      set(out, { agent: event.data.agent })
      return changed(out, "agent", event.data.agent)
    case "session.next.model.switched":
      set(out, { model: event.data.model })
      return changed(out, "model", Steps.modelText(event.data.model))
    case "session.next.moved":
      moved(out, { directory: event.data.location.directory })
      return changed(out, "cwd", out.state.cwd)
    case "session.next.renamed":
      set(out, { title: event.data.title })
      return changed(out, "title", event.data.title)
    case "session.next.prompt.admitted":
      return admitted(out, event.data.messageID, event.data.prompt)
    case "session.next.prompted":
    case "session.next.prompt.promoted":
      return visible(out, event.data.messageID, event.data.prompt)
    case "session.next.prompt.withdrawn":
      forget(out, event.data.messageID)
      return Runs.withdrawn(out, event.data.messageID)
    case "session.next.activity.started":
      return Runs.activityStarted(out, event)
    case "session.next.activity.settled":
      return Runs.activitySettled(out, event)
    case "session.next.context.updated":
    case "session.next.synthetic":
      return say(out, "system", event.data.messageID, [{ type: "text", text: event.data.text }])
    case "session.next.shell.started": {
      const { callID, command, messageID } = event.data
      return set(out, { shells: [...out.state.shells, { callID, messageID, command }] })
    }
    case "session.next.shell.ended": {
      const { callID, output } = event.data
      const shell = out.state.shells.find((open) => open.callID === callID)
      if (shell === undefined) return
      set(out, { shells: out.state.shells.filter((open) => open !== shell) })
      const text = `$ ${shell.command}\n${output}`
      return say(out, "user", shell.messageID, [{ type: "text", text, from: "shell" }])
    }
    case "session.next.step.started":
      return Steps.started(out, event)
    case "session.next.step.ended":
      spend(out, event.data)
      return Steps.ended(out, event)
    case "session.next.step.failed":
      return Steps.failed(out, event)
    case "session.next.text.started":
      return Steps.textStarted(out, event)
    case "session.next.text.ended":
      return Steps.textEnded(out, event)
    case "session.next.tool.input.started":
      return Steps.inputStarted(out, event)
    case "session.next.tool.called":
      return Steps.called(out, event)
    case "session.next.tool.success":
      return Steps.succeeded(out, event)
    case "session.next.tool.failed":
      return Steps.callFailed(out, event)
    case "session.next.retried":
      return error(out, "provider", event.data.error.message)
    case "session.next.compaction.ended":
      spend(out, event.data)
      set(out, { compactions: out.state.compactions + 1 })
      return changed(out, "compaction", event.data.reason)
    case "session.next.compaction.failed":
      spend(out, event.data)
      return error(out, event.data.error.type, event.data.error.message)
    case "session.next.context.pruned":
      set(out, { pruned: event.data.through })
      return changed(out, "pruned", String(event.data.through))
    case "session.next.budget.set":
      return changed(out, "budget", JSON.stringify(event.data.budget))
    // These have no row: live work, request frames, or data that only the model sees.
    case "session.next.interrupt.requested":
    case "session.next.request.framed":
    case "session.next.instructions.discovered":
    case "session.next.reasoning.started":
    case "session.next.reasoning.ended":
    case "session.next.tool.input.ended":
    case "session.next.tool.progress":
    case "session.next.compaction.requested":
    case "session.next.compaction.started":
    case "session.next.question.answered":
    case "session.next.question.dismissed":
    case "session.next.permission.decided":
    case "session.next.permission.revoked":
      return
  }
}

/** Applies one event to a state that the caller owns; changes that state in place. */
export const evolveOwn = (state: State, event: SessionEvent): Evolved => {
  const out: Out = { event, state, messages: [], events: [], blobs: [] }
  Runs.begin(out)
  fold(out, event)
  const { blobs, events, messages } = out
  const { lines, updatedAtMs } = out.state
  set(out, {
    seq: event.seq,
    position: event.position,
    updatedAtMs: Math.max(updatedAtMs, event.created)
  })
  if (messages.length + events.length > 0)
    set(out, { lines: { messages: lines.messages + messages.length, events: lines.events + events.length } })
  return { state, messages, events, blobs }
}

/** Applies one event to a copy of the state. */
export const evolve = (state: State, event: SessionEvent): Evolved => evolveOwn({ ...state }, event)

/**
 * To render event rows from the start of an activity at which nothing is open, the last event of each of these types is
 * enough (FI-37).
 */
export const framing = [
  "session.created",
  "session.next.addressed",
  "session.next.moved",
  "session.next.model.switched"
] as const satisfies ReadonlyArray<DurableType>

/** The state from which to render event rows at an activity's start, from the last event of each `framing` type. */
export const startAt = (before: ReadonlyArray<SessionEvent>): State =>
  before.reduce((state, event) => evolve(state, event).state, initial)
