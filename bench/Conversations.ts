/**
 * Generates sessions with the content of real work: prompts and answers are sentences of this project's specifications,
 * results of calls are slices of its sources (as `read` returns them) or lines of many files in random order (as searches
 * and commands print them), and commands report progress. Seeded, so that two runs hold the same.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { ActivityID, MessageID } from "../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../packages/log/src/events/SessionEvents.ts"
import { model, tokens } from "./Workload.ts"

interface Corpus {
  readonly sentences: ReadonlyArray<string>
  readonly sources: ReadonlyArray<string>
  readonly lines: ReadonlyArray<string>
}

const filesBelow = (folder: string, end: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(end) && !/node_modules|(^|\/)dist\//.test(name))
    .toSorted()
    .map((name) => readFileSync(join(folder, name), "utf8"))

/** The texts of the project in the working directory. */
export const corpus = (): Corpus => {
  const sources = filesBelow("packages", ".ts")
  const prose = filesBelow("specs", ".md").join("\n").replace(/\s+/g, " ")
  return {
    sources,
    sentences: prose.split(/(?<=\.) /).filter((sentence) => sentence.length > 30),
    lines: sources.flatMap((text) => text.split("\n")).filter((line) => line.trim().length > 3)
  }
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
const randomFrom = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const provider = { executed: false }

/** Progress events of a command, of at most so many characters: what `bash` reports once a second. */
const [mostProgress, progressLength] = [4, 2000]

/** The turns of all sessions of a store. */
export const turns = ({ lines, sentences, sources }: Corpus, seed: number) => {
  const random = randomFrom(seed)
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1))
  const one = (texts: ReadonlyArray<string>) => texts[Math.floor(random() * texts.length)] ?? ""
  const joined = (texts: ReadonlyArray<string>, length: number, separator: string) => {
    let text = ""
    while (text.length < length) text += one(texts) + separator
    return text
  }
  let made = 0
  const identifier = (prefix: string) => `${prefix}_${String(made++).padStart(26, "0")}`

  const content = (text: string) => [{ type: "text" as const, text }]

  const call = (assistantMessageID: MessageID, tool: string, input: Record<string, unknown>, output: string) => {
    const callID = identifier("toolu")
    const reports = tool === "bash" ? between(0, mostProgress) : 0
    return [
      draft("session.next.tool.input.started", { assistantMessageID, callID, name: tool }),
      draft("session.next.tool.input.ended", { assistantMessageID, callID, text: JSON.stringify(input) }),
      draft("session.next.tool.called", { assistantMessageID, callID, tool, input, provider }),
      ...Array.from({ length: reports }, (_, index) => {
        const end = Math.floor((output.length * (index + 1)) / (reports + 1))
        return draft("session.next.tool.progress", {
          assistantMessageID,
          callID,
          structured: { bytes: end },
          content: content(output.slice(Math.max(0, end - progressLength), end))
        })
      }),
      draft("session.next.tool.success", {
        assistantMessageID,
        callID,
        structured: { truncated: false },
        content: content(output),
        provider
      })
    ]
  }

  const called = (assistantMessageID: MessageID): ReadonlyArray<Draft> => {
    const kind = random()
    if (kind < 0.4) {
      const source = one(sources)
      const [start, length] = [between(0, source.length >> 1), between(1000, 12_000)]
      const input = { path: `packages/${between(0, 400)}.ts`, offset: start }
      return call(assistantMessageID, "read", input, source.slice(start, start + length))
    }
    return kind < 0.6
      ? call(assistantMessageID, "grep", { pattern: one(lines).slice(0, 20) }, joined(lines, between(300, 5000), "\n"))
      : call(assistantMessageID, "bash", { command: one(lines) }, joined(lines, between(200, 9000), "\n"))
  }

  const step = (middle: (id: MessageID) => ReadonlyArray<Draft>, finish: string): ReadonlyArray<Draft> => {
    const assistantMessageID = MessageID.make(identifier("msg"))
    const text = joined(sentences, between(80, finish === "stop" ? 1500 : 200), " ")
    return [
      draft("session.next.step.started", { assistantMessageID, agent: "build", model }),
      draft("session.next.text.started", { assistantMessageID, textID: "0" }),
      draft("session.next.text.ended", { assistantMessageID, textID: "0", text }),
      ...middle(assistantMessageID),
      draft("session.next.step.ended", { assistantMessageID, finish, cost: 0.0123, tokens })
    ]
  }

  /** Every event of one turn: a prompt, up to six steps with a call, and an answer. */
  return (): ReadonlyArray<Draft> => {
    const messageID = MessageID.make(identifier("msg"))
    const activityID = ActivityID.make(identifier("act"))
    const prompt = { text: joined(sentences, between(50, 400), " ") }
    return [
      draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
      draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1_750_000_000_000 }),
      draft("session.next.activity.started", { activityID, trigger: "steer" }),
      ...Array.from({ length: between(1, 6) }, () => step(called, "tool-calls")).flat(),
      ...step(() => [], "stop"),
      draft("session.next.activity.settled", { activityID, outcome: "completed" })
    ]
  }
}
