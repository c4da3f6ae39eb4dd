/** Folds changes of the session outside of its runs, and its spending. Pure. Spec: FI-23..FI-25, FI-35 (FL-4, FL-5). */
import { withheldText } from "@daybook/log/domain/Message"
import { modelText, type Tokens } from "@daybook/log/domain/Values"
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import { present } from "@daybook/log/support/Optional"
import { agentDirectory, type ContentBlock, type EventRow, timeText } from "../row/Rows.ts"
import { blocksOf, codeOf, ofRun, type Out, place, promptContent, set } from "./Out.ts"
import { initial } from "./State.ts"

// Folds what the model reads besides its own output: prompts, system texts and the host's commands.

/** Adds a user or system row with these blocks. */
const say = (out: Out, role: "user" | "system", id: string, content: ReadonlyArray<ContentBlock>): void => {
  out.messages.push({ role, id, time: timeText(out.event.created), ...ofRun(out), content })
}

/** Keeps a prompt's content until its promotion; only the admission carries it. */
export const admitted = (out: Out, { data }: EventOfType<"session.next.prompt.admitted">): void =>
  set(out, {
    waiting: [...out.state.waiting, { id: data.messageID, content: blocksOf(out, promptContent(data.prompt)) }]
  })

/** Drops a prompt's kept content. */
export const forget = (out: Out, id: string): void => {
  if (out.state.waiting.some((waiting) => waiting.id === id))
    set(out, { waiting: out.state.waiting.filter((waiting) => waiting.id !== id) })
}

export const promoted = (
  out: Out,
  { data }: EventOfType<"session.next.prompt.promoted"> | EventOfType<"session.next.prompted">
): void => {
  const { messageID: id, prompt } = data
  const waited = out.state.waiting.find((waiting) => waiting.id === id)
  forget(out, id)
  if (prompt.system !== undefined && prompt.system !== "")
    say(out, "system", `${id}.system`, [{ type: "text", text: prompt.system }])
  say(out, "user", id, waited?.content ?? blocksOf(out, promptContent(prompt)))
}

export const systemText = (
  out: Out,
  { data }: EventOfType<"session.next.context.updated" | "session.next.synthetic" | "session.next.branch.summarized">
): void => say(out, "system", data.messageID, [{ type: "text", text: data.text }])

export const shellStarted = (out: Out, { data }: EventOfType<"session.next.shell.started">): void => {
  const { callID, command, messageID } = data
  set(out, { shells: [...out.state.shells, { callID, messageID, command }] })
}

export const shellEnded = (out: Out, { data }: EventOfType<"session.next.shell.ended">): void => {
  const shell = out.state.shells.find(({ callID }) => callID === data.callID)
  if (shell === undefined) return
  set(out, { shells: out.state.shells.filter((open) => open !== shell) })
  say(out, "user", shell.messageID, [{ type: "text", text: `$ ${shell.command}\n${data.output}`, from: "shell" }])
}

const changed = (out: Out, change: Extract<EventRow, { readonly type: "state" }>["change"], value?: string): void => {
  out.events.push({ type: "state", ...place(out), ...ofRun(out), change, ...(value === undefined ? {} : { value }) })
}

const placed = (out: Out, at: { readonly root?: string; readonly directory?: string }): void => {
  set(out, at)
  set(out, { cwd: agentDirectory(out.state.root, out.state.directory) })
}

export const created = (out: Out, event: EventOfType<"session.created">): void => {
  const { agent, cronJobID, instructions, location, model, parentID, source, title } = event.data
  set(out, {
    sessionID: event.sessionID,
    createdAtMs: event.created,
    createdPosition: event.position,
    updatedAtMs: event.created,
    ...present({ agent, firstAgent: agent, model, title, parentID, source, cronJobID, instructions })
  })
  placed(out, { directory: location.directory })
  changed(out, "created")
}

export const addressed = (out: Out, { data }: EventOfType<"session.next.addressed">): void => {
  set(out, { address: data.address })
  placed(out, data.root === undefined ? {} : { root: data.root })
}

export const agentSwitched = (out: Out, { data }: EventOfType<"session.next.agent.switched">): void => {
  set(out, { agent: data.agent })
  changed(out, "agent", data.agent)
}

export const modelSwitched = (out: Out, { data }: EventOfType<"session.next.model.switched">): void => {
  set(out, { model: data.model })
  changed(out, "model", modelText(data.model))
}

export const moved = (out: Out, { data }: EventOfType<"session.next.moved">): void => {
  placed(out, { directory: data.location.directory })
  changed(out, "cwd", out.state.cwd)
}

export const renamed = (out: Out, { data }: EventOfType<"session.next.renamed">): void => {
  set(out, { title: data.title })
  spend(out, data)
  changed(out, "title", data.title)
}

export const budgetSet = (out: Out, { data }: EventOfType<"session.next.budget.set">): void =>
  changed(out, "budget", JSON.stringify(data.budget))

export const pruned = (out: Out, { data }: EventOfType<"session.next.context.pruned">): void => {
  set(out, { pruned: data.through })
  changed(out, "pruned", String(data.through))
}

export const withheld = (out: Out, { data }: EventOfType<"session.next.part.withheld">): void =>
  changed(out, "withheld", withheldText(data))

/** Results are shown again in the branch: the marks of the branch that was left do not hold there (HP-8). */
export const leafMoved = (out: Out, { data }: EventOfType<"session.next.leaf.moved">): void => {
  if (out.state.pruned !== undefined) set(out, { pruned: -1 })
  changed(out, "leaf", data.messageID)
}

export const labeled = (out: Out, { data }: EventOfType<"session.next.labeled">): void =>
  changed(out, "label", [data.messageID, data.label].filter((part) => part !== undefined).join(" "))

export const restored = (out: Out, { data }: EventOfType<"session.next.files.restored">): void => {
  const { changed: files, conflicts } = data.counts
  const redone = data.redoes === undefined ? "" : "taken back: "
  changed(out, "undo", `${redone}${files} files restored, ${conflicts} left`)
}

/** The repeated events were paid for in the session that they come from. */
export const forked = (out: Out, { data }: EventOfType<"session.next.forked">): void => {
  set(out, { cost: 0, tokens: initial.tokens })
  changed(out, "fork", data.from)
}

/** Adds, and clamps the sum to numbers that JSON can hold. */
const sum = (a: number, b: number): number => Math.min(Math.max(a + b, -Number.MAX_VALUE), Number.MAX_VALUE)

const sumOf = (a: Tokens, b: Tokens): Tokens => ({
  input: sum(a.input, b.input),
  output: sum(a.output, b.output),
  reasoning: sum(a.reasoning, b.reasoning),
  cache: { read: sum(a.cache.read, b.cache.read), write: sum(a.cache.write, b.cache.write) }
})

/** Adds the cost and tokens of a request. */
export const spend = (
  out: Out,
  { cost = 0, tokens }: { readonly cost?: number | undefined; readonly tokens?: Tokens | undefined }
): void => {
  set(out, { cost: sum(out.state.cost, cost) })
  if (tokens !== undefined) set(out, { tokens: sumOf(out.state.tokens, tokens) })
}

const recoverable = (out: Out, type: string, message: string): void => {
  out.events.push({ type: "error", ...place(out), ...ofRun(out), code: codeOf(type), message, recoverable: true })
}

export const retried = (out: Out, { data }: EventOfType<"session.next.retried">): void =>
  recoverable(out, "provider", data.error.message)

export const compacted = (out: Out, { data }: EventOfType<"session.next.compaction.ended">): void => {
  spend(out, data)
  set(out, { compactions: out.state.compactions + 1 })
  changed(out, "compaction", data.reason)
}

export const compactionFailed = (out: Out, { data }: EventOfType<"session.next.compaction.failed">): void => {
  spend(out, data)
  recoverable(out, data.error.type, data.error.message)
}
