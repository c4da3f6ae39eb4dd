/**
 * Generates random logs as a runner writes them, with frames and events that change requests: full and partial frames, context
 * updates that a later baseline contains, pruned and restored results, checkpoints that keep prompts, commands that end after a
 * step that showed them running.
 */
import { FastCheck as fc } from "effect"
import { MessageID } from "../../../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../../../packages/log/src/events/SessionEvents.ts"
import { runnerLog } from "../../support/RunnerLogs.ts"

const tool = (name: string, description: string) => ({ name, description, parameters: { type: "object" } })

/** Inserts events into a log as the picks say; positions in events are those of the resulting log. */
const decorated = (name: string, drafts: ReadonlyArray<Draft>, picks: ReadonlyArray<number>): ReadonlyArray<Draft> => {
  const log: Array<Draft> = []
  let [baselineSeq, framed, told, taken] = [-1, 0, 0, 0]
  const pick = (below: number): number => (picks[taken++ % picks.length] ?? 0) % below
  const late: Array<Draft> = []
  /** Prompts promoted after the last step. */
  let unanswered: Array<number> = []
  const frame = () => {
    if (framed > 0 && pick(3) > 0) return
    framed += 1
    if (pick(2) === 0) baselineSeq = log.length - 1
    const tools = [tool("read", `reads, ${pick(2)}`), ...(pick(2) === 0 ? [tool("look", "looks")] : [])]
    const whole = framed === 1 || pick(2) === 0
    log.push(
      draft("session.next.request.framed", {
        hash: `${name}${framed}`,
        baselineSeq,
        ...(whole || pick(2) === 0 ? { system: ["You help.", `Baseline ${framed}`] } : {}),
        ...(whole || pick(2) === 0 ? { tools: { offered: tools.map(({ name }) => name), defined: tools } } : {}),
        ...(whole ? { settings: pick(2) === 0 ? { contextWindow: 50_000 } : { systemMessages: "anywhere" } } : {})
      })
    )
  }
  for (const next of drafts) {
    if (next.type === "session.next.step.started") {
      if (pick(3) === 0) {
        told += 1
        const messageID = MessageID.make(`msg_${name}-told-${told}`)
        log.push(draft("session.next.context.updated", { messageID, text: `News ${told}` }))
      }
      if (pick(4) === 0) log.push(draft("session.next.context.pruned", { through: pick(log.length + 1) - 1 }))
      frame()
      unanswered = []
    }
    if (next.type === "session.next.prompt.promoted") unanswered.push(log.length)
    if (next.type === "session.next.shell.ended" && pick(2) === 0) late.push(next)
    else if (next.type === "session.next.compaction.ended") {
      // A checkpoint summarizes the prompts that it does not keep; later checkpoints do not keep them either.
      if (pick(2) === 0) unanswered = []
      const [firstKeptSeq] = unanswered
      log.push(firstKeptSeq === undefined ? next : { ...next, data: { ...next.data, firstKeptSeq } })
    } else log.push(next)
    if (pick(6) === 0) log.push(...late.splice(0))
  }
  return [...log, ...late]
}

/** A log that a runner could have written, every step of it framed. */
export const framedLog = (name: string): fc.Arbitrary<ReadonlyArray<Draft>> =>
  fc
    .tuple(runnerLog(name), fc.array(fc.nat(1_000), { minLength: 40, maxLength: 40 }))
    .map(([drafts, picks]) => decorated(name, drafts, picks))
