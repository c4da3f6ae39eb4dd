/**
 * Folds what the model reads besides its own output: prompts, system texts and the host's commands. Pure. Spec:
 * FI-23..FI-25 in specs/files.md (FL-4).
 */
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import type { ContentBlock } from "../row/Rows.ts"
import { timeText } from "../row/TimeText.ts"
import { promptContent } from "./Blocks.ts"
import { blocksOf, ofRun, type Out, set } from "./Out.ts"

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
