/**
 * The checker of the fault harness. It knows nothing of what was done to the nodes, and reads only what was acknowledged, the
 * lines that tools left, what clients heard, and the log as each node shows it. It returns what is wrong.
 */
import { readFileSync } from "node:fs"
import { Effect, Predicate, Schema } from "effect"
import { Stored, type FaultClient } from "./FaultClient.ts"
import { callsOf } from "./FaultModel.ts"
import type { FaultNode } from "./FaultNodes.ts"

const Lines = Schema.parseJson(Schema.Struct({ event: Schema.optional(Stored) }))

const eventsIn = (text: string): ReadonlyArray<Stored> =>
  text.split("\n").flatMap((line) => {
    const event = line === "" ? undefined : Schema.decodeUnknownSync(Lines)(line).event
    return event === undefined ? [] : [event]
  })

/** All stored events at this path of a node. */
const shownBy = (node: FaultNode, path: string) =>
  Effect.gen(function* () {
    const { base, headers } = yield* node.up
    const response = yield* Effect.promise(() =>
      fetch(`${base}${path}?follow=0`, { headers: { ...headers, accept: "application/x-ndjson" } })
    )
    return eventsIn(yield* Effect.promise(() => response.text()))
  })

export interface Line {
  readonly call: string
  readonly prompt: string
  readonly step: number
}

const linesOf = (file: string): ReadonlyArray<Line> =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [call = "", prompt = "", step = ""] = line.split(" ")
      return { call, prompt, step: Number(step) }
    })

const repeated = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.filter((text, at) => texts.indexOf(text) !== at)

const textOf = (event: Stored, field: string): string => String(event.data[field])

/** What became of a prompt: how its activity ended, and which of its calls are stored, and were cut off. */
interface Fate {
  outcome: string
  error: string
  answer: string
  readonly calls: Array<string>
  readonly cutCalls: Set<string>
  /** Its events, for a reader of a failure. */
  readonly story: Array<string>
}

/** Whether a call failed because its process died. */
const isCut = ({ data }: Stored) =>
  Predicate.hasProperty(data["error"], "type") && data["error"].type === "tool.interrupted"

/** The prompts of a session in the order in which they ran. */
const fatesOf = (events: ReadonlyArray<Stored>): ReadonlyMap<string, Fate> => {
  const fates = new Map<string, Fate>()
  let current: Fate | undefined
  for (const event of events) {
    if (event.type === "session.next.prompt.promoted") {
      current = { outcome: "open", error: "", answer: "", calls: [], cutCalls: new Set(), story: [] }
      fates.set(textOf(event, "messageID"), current)
    }
    if (current === undefined) continue
    current.story.push(`${event.seq} ${event.type.replace("session.next.", "")} ${String(event["created"])}`)
    if (event.type === "session.next.tool.called") current.calls.push(textOf(event, "callID"))
    if (event.type === "session.next.tool.failed" && isCut(event)) current.cutCalls.add(textOf(event, "callID"))
    if (event.type === "session.next.text.ended") current.answer = textOf(event, "text")
    if (event.type === "session.next.activity.settled") {
      current.outcome = textOf(event, "outcome")
      current.error = JSON.stringify(event.data["error"] ?? "")
    }
  }
  return fates
}

const idsOf = (events: ReadonlyArray<Stored>, type: string) =>
  events.filter((event) => event.type === type).map((event) => textOf(event, "messageID"))

const same = (one: ReadonlyArray<Stored>, two: ReadonlyArray<Stored>): number | undefined => {
  const at = Array.from({ length: Math.max(one.length, two.length) }, (_, index) => index).find(
    (index) => JSON.stringify(one[index]) !== JSON.stringify(two[index])
  )
  return at
}

export interface Checked {
  readonly problems: ReadonlyArray<string>
  /** The prompts that were not answered, with their events. */
  readonly cut: ReadonlyArray<string>
  /** Prompts by outcome. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly errors: Readonly<Record<string, number>>
  readonly prompts: number
  readonly calls: number
  readonly events: number
}

/** What is wrong with the prompts of a session. */
export const promptsOf = (
  client: Pick<FaultClient, "acknowledged">,
  events: ReadonlyArray<Stored>,
  lines: ReadonlyArray<Line>
) => {
  const problems: Array<string> = []
  const fates = fatesOf(events)
  const admitted = idsOf(events, "session.next.prompt.admitted")
  const promoted = idsOf(events, "session.next.prompt.promoted")
  problems.push(...repeated(admitted).map((id) => `${id} was admitted twice`))
  problems.push(...repeated(promoted).map((id) => `${id} ran twice`))
  for (const id of client.acknowledged) {
    if (!admitted.includes(id)) problems.push(`${id} was acknowledged and is not in the log`)
    const fate = fates.get(id)
    const steps = lines.filter(({ prompt }) => prompt === id).map(({ step }) => step)
    if (fate === undefined) {
      problems.push(`${id} waits at the end`)
      continue
    }
    if (fate.outcome === "open") problems.push(`${id} did not end`)
    if (fate.outcome !== "completed" && !/process\.ended|LogUnavailable/.test(fate.error)) {
      problems.push(`${id} was not answered: ${fate.outcome} ${fate.error}`)
    }
    if (fate.outcome !== "completed") continue
    // A call that was cut off is not made again, and may have done nothing.
    const isIdle = (call: string | undefined) =>
      call !== undefined && fate.cutCalls.has(call) && !lines.some((line) => line.call === call)
    const wanted = Array.from({ length: callsOf(id) }, (_, step) => step).filter((step) => !isIdle(fate.calls[step]))
    if (steps.join() !== wanted.join()) {
      problems.push(`${id} completed with the calls ${steps.join()}: ${fate.story.join("; ")}`)
    }
    if (!fate.answer.includes(id)) problems.push(`${id} completed with the answer ${fate.answer}`)
  }
  return { problems, fates }
}

const counted = (texts: Iterable<string>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1
  return counts
}

export const check = Effect.fnUntraced(function* (
  clients: ReadonlyArray<FaultClient>,
  nodes: ReadonlyArray<FaultNode>,
  effects: string
) {
  const [lines, problems, fates]: [ReadonlyArray<Line>, Array<string>, Array<Fate>] = [linesOf(effects), [], []]
  let events = 0
  problems.push(...repeated(lines.map(({ call }) => call)).map((call) => `the tool ran twice for ${call}`))
  problems.push(
    ...repeated(lines.map(({ prompt, step }) => `${prompt} ${step}`)).map((step) => `the step ${step} ran twice`)
  )
  for (const client of clients) {
    const [first, ...others] = yield* Effect.forEach(nodes, (node) =>
      shownBy(node, `/sessions/${client.sessionID}/events`)
    )
    const log = first ?? []
    events += log.length
    others.forEach((other, index) => {
      const at = same(log, other)
      if (at !== undefined) problems.push(`${client.sessionID}: node ${index + 1} shows another event at ${at}`)
    })
    const gap = log.findIndex(({ seq }, index) => seq !== index)
    if (gap >= 0) problems.push(`${client.sessionID}: the log has a gap at ${gap}`)
    const unlike = same(log, client.heard)
    if (unlike !== undefined) {
      problems.push(
        `${client.sessionID}: event ${unlike} of ${log.length} was heard as ${JSON.stringify(client.heard[unlike])}`
      )
    }
    const found = promptsOf(client, log, lines)
    problems.push(...found.problems)
    const called = [...found.fates.values()].flatMap(({ calls }) => calls)
    problems.push(...repeated(called).map((call) => `${call} was called twice`))
    fates.push(...found.fates.values())
  }
  const called = new Set(fates.flatMap(({ calls }) => calls))
  problems.push(...lines.filter(({ call }) => !called.has(call)).map(({ call }) => `${call} ran and is not in the log`))
  const feeds = yield* Effect.forEach(nodes, (node) => shownBy(node, "/events"))
  feeds.forEach((feed, index) => {
    const at = same(feeds[0] ?? [], feed)
    if (at !== undefined) problems.push(`node ${index} shows another event of all sessions at ${at}`)
  })
  if (feeds[0]?.length !== events) problems.push(`the feed has ${feeds[0]?.length} events, and the sessions ${events}`)
  const checked: Checked = {
    cut: fates.flatMap(({ error, outcome, story }) =>
      outcome === "completed" ? [] : [`${outcome} ${error}: ${story.join(", ")}`]
    ),
    problems,
    outcomes: counted(fates.map(({ outcome }) => outcome)),
    errors: counted(fates.flatMap(({ error, outcome }) => (outcome === "completed" ? [] : [`${outcome}: ${error}`]))),
    prompts: fates.length,
    calls: lines.length,
    events
  }
  return checked
})
