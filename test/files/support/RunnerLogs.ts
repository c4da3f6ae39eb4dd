/**
 * Generates random logs as the runner writes them: consecutive activities with steps; every call settles before its activity;
 * results arrive before or after their step's end, in any order; host events occur between activities.
 */
import { FastCheck as fc } from "effect"
import { ActivityID, MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { StoredError } from "../../../packages/log/src/domain/Values.ts"
import { type Draft, draft } from "../../../packages/log/src/events/SessionEvents.ts"

type Made<Of> = Of extends fc.Arbitrary<infer A> ? A : never
const oneOf = <const A>(...values: ReadonlyArray<A>): fc.Arbitrary<A> => fc.constantFrom(...values)

const call = fc.record({
  /** Whether it arrives before its step ends. */
  early: fc.boolean(),
  order: fc.nat(100),
  fails: fc.boolean(),
  hosted: fc.boolean(),
  image: fc.boolean()
})
const step = fc.record({
  texts: fc.array(fc.oneof(fc.string(), oneOf("", "Hé 😀", "a\nb", "\ud800", "\u2028")), { maxLength: 3 }),
  calls: fc.array(call, { maxLength: 4 }),
  fails: fc.boolean(),
  retried: fc.boolean()
})
const prompt = fc.record({
  text: fc.string(),
  client: fc.option(oneOf("/", "/work", "/w\n2"), { nil: undefined }),
  file: fc.boolean(),
  system: fc.boolean()
})
const activity = fc.record({
  kind: fc.constant("activity" as const),
  trigger: oneOf("steer", "queue", "resume"),
  prompts: fc.array(prompt, { minLength: 1, maxLength: 3 }),
  steps: fc.array(step, { maxLength: 4 }),
  outcome: oneOf("completed", "failed", "interrupted", "process")
})
const between = fc.record({
  kind: oneOf("moved", "model", "agent", "renamed", "waits", "withdrawn", "addressed", "shell", "compacted"),
  text: fc.string({ minLength: 1 })
})

type Activity = Made<typeof activity>
type Step = Activity["steps"][number]
type Asked = Activity["prompts"][number]

const tokens = { input: 3, output: 2, reasoning: 1, cache: { read: 1, write: 0 } }
const picture = "data:image/png;base64,iVBORw0KGgo="
const model = { providerID: "scripted", id: "one" }
const processEnded: StoredError = { type: "process.ended", message: "the process ended" }

/** Gives each log unique ids. */
const makeWriter = (name: string) => {
  let count = 0
  const drafts: Array<Draft> = []
  const fresh = () => MessageID.make(`msg_${name}-${(count += 1)}`)
  const write = (...more: ReadonlyArray<Draft>): void => void drafts.push(...more)

  const admit = ({ client, file, system, text }: Asked) => {
    const messageID = fresh()
    const asked = {
      text,
      ...(system ? { system: "Be brief." } : {}),
      ...(client === undefined ? {} : { client: { id: `c${count}`, cwd: client } }),
      ...(file ? { files: [{ uri: picture, mime: "image/png" }] } : {})
    }
    const parts = [
      { kind: "file", name: "a.txt", content: { type: "text", text: `a of ${text}` } },
      { kind: "media", name: "p", content: { type: "file", uri: "attachment:0", mime: "image/png" } }
    ] as const
    write(
      draft("session.next.prompt.admitted", {
        messageID,
        prompt: file ? { ...asked, expansion: { text: "expanded", parts } } : asked,
        delivery: "queue"
      })
    )
    return draft("session.next.prompt.promoted", { messageID, prompt: asked, timeCreated: 7 })
  }

  const runStep = ({ calls, fails, retried, texts }: Step) => {
    const assistantMessageID = fresh()
    const at = { assistantMessageID }
    write(draft("session.next.step.started", { ...at, agent: "build", model }))
    if (retried)
      write(draft("session.next.retried", { attempt: 1, error: { message: "overloaded", isRetryable: true } }))
    const results = calls.map(({ early, fails: broken, hosted, image, order }, index) => {
      const callID = `call_${index}`
      const provider = { executed: hosted }
      const input = { 1: index, path: "x" }
      write(
        draft("session.next.tool.input.started", { ...at, callID, name: "read" }),
        draft("session.next.tool.input.ended", { ...at, callID, text: "{}" }),
        draft("session.next.tool.called", { ...at, callID, tool: "read", input, provider })
      )
      const content = image ? [{ type: "file" as const, uri: picture, mime: "image/png" }] : []
      const result = broken
        ? draft("session.next.tool.failed", {
            ...at,
            callID,
            error: { type: "file.missing", message: "no" },
            provider
          })
        : draft("session.next.tool.success", { ...at, callID, structured: { index }, content, provider })
      return { early, order, result }
    })
    const ordered = results.toSorted((a, b) => a.order - b.order)
    const settle = (early: boolean) =>
      write(...ordered.filter((one) => one.early === early).map(({ result }) => result))
    texts.forEach((text, index) => {
      const textID = `t${index}`
      write(draft("session.next.text.started", { ...at, textID }))
      if (index === 0) settle(true)
      write(draft("session.next.text.ended", { ...at, textID, text }))
    })
    if (texts.length === 0) settle(true)
    // A failed step has no calls in flight.
    if (fails) {
      settle(false)
      return write(
        draft("session.next.step.failed", { ...at, error: { type: "context-overflow", message: "too long" } })
      )
    }
    write(draft("session.next.step.ended", { ...at, finish: "stop", cost: 0.1, tokens }))
    settle(false)
  }

  const runActivity = ({ outcome, prompts, steps, trigger }: Activity) => {
    const activityID = ActivityID.make(`act_${name}-${(count += 1)}`)
    const promotions = trigger === "resume" ? [] : prompts.map(admit)
    const [first, ...later] = promotions
    write(draft("session.next.activity.started", { activityID, trigger }))
    if (first !== undefined) write(first)
    const [head, ...tail] = steps
    if (head !== undefined) runStep(head)
    write(...later)
    tail.forEach(runStep)
    write(
      draft("session.next.activity.settled", {
        activityID,
        outcome: outcome === "process" ? "interrupted" : outcome,
        ...(outcome === "process" ? { error: processEnded } : {}),
        ...(outcome === "failed" ? { error: { type: "ProviderFailed", message: "gone" } } : {})
      })
    )
  }

  const runBetween = ({ kind, text }: Made<typeof between>): void => {
    switch (kind) {
      case "moved":
        return write(draft("session.next.moved", { location: { directory: `/root/${text}` } }))
      case "model":
        return write(draft("session.next.model.switched", { messageID: fresh(), model: { ...model, id: text } }))
      case "agent":
        return write(draft("session.next.agent.switched", { messageID: fresh(), agent: text }))
      case "renamed":
        return write(draft("session.next.renamed", { title: text }))
      case "waits":
        return void admit({ text, client: "/", file: true, system: false })
      case "withdrawn": {
        const { messageID } = admit({ text, client: "/", file: false, system: false }).data
        return write(draft("session.next.prompt.withdrawn", { messageID }))
      }
      case "addressed": {
        const address = { scope: "private", uid: 7, kind: "agent", name: "coder", session: "default" } as const
        return write(draft("session.next.addressed", { address, root: "/root" }))
      }
      case "shell": {
        const callID = `shell-${(count += 1)}`
        return write(
          draft("session.next.shell.started", { messageID: fresh(), callID, command: text }),
          draft("session.next.shell.ended", { callID, output: "" })
        )
      }
      case "compacted":
        return write(
          draft("session.next.compaction.ended", {
            messageID: fresh(),
            reason: "manual",
            text,
            recent: "",
            cost: 0.5,
            tokens
          })
        )
    }
  }
  return { drafts, write, runActivity, runBetween }
}

/** A log that a runner could have written. */
export const runnerLog = (name: string): fc.Arbitrary<ReadonlyArray<Draft>> =>
  fc.array(fc.oneof(activity, between), { maxLength: 8 }).map((pieces) => {
    const writer = makeWriter(name)
    writer.write(draft("session.created", { location: { directory: "/root/work" } }))
    for (const piece of pieces) {
      if (piece.kind === "activity") writer.runActivity(piece)
      else writer.runBetween(piece)
    }
    return writer.drafts
  })
