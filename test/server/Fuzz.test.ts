/**
 * Method: a server over a real socket that answers each request with a pong and each other line with its error. From a
 * seed come lines of every kind that a client could get wrong, each with the answer it has to get; they are glued together
 * and cut anywhere, and sent. Every line has to be answered once, in order, as specified; the connection goes on, and so
 * does that of a neighbour. `DAYBOOK_SEED` gives another seed; a failure names the one it had.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { listen } from "../../packages/server/src/socket/Listener.ts"
import { maxLineBytes } from "../../packages/server/src/socket/Request.ts"
import { type Random, random } from "../request/support/Random.ts"
import { connectTo } from "./support/Client.ts"
import { temporaryFolder } from "./support/Folder.ts"
import { answerPongs } from "./support/Pong.ts"

interface Case {
  readonly line: Uint8Array
  /** The code of the error, or the id of the pong. */
  readonly answer: { readonly code: string } | { readonly pong: string | undefined }
}

const bytes = (text: string) => new TextEncoder().encode(text)
const invalid = { code: "EINVAL" }

const pick = <A>(from: Random, ...options: readonly [A, ...ReadonlyArray<A>]): A =>
  options[from.below(options.length)] ?? options[0]

/** Bytes of every value but the line's end, that no JSON text begins with. */
const noise = (from: Random): Uint8Array => {
  const made = Uint8Array.from({ length: 1 + from.below(200) }, () => from.below(256))
  made[0] = 0xff
  return made.map((byte) => (byte === 0x0a ? 0x0b : byte))
}

const huge = (from: Random): string =>
  pick(from, "1e999999", "-1e308", "9".repeat(1 + from.below(5000)), "0.1e-999999", "12345678901234567890")

const deep = (from: Random): string => {
  const depth = 1 + from.below(20_000)
  const [open, close] = pick(from, ["[", "]"] as const, ['{"a":', "}"] as const)
  return `${open.repeat(depth)}1${close.repeat(depth)}`
}

const valid = (from: Random): { readonly text: string; readonly id: string } => {
  const id = `c${from.below(1_000_000)}`
  const fields = pick<object>(
    from,
    { op: "ping", id },
    { op: "send", id, input: from.words(1 + from.below(50)) },
    { op: "send", id, input: "\u2028\u0001 🎉", cwd: "/work", session: "list" },
    { op: "send", id, input: "x", scope: "shared", shared: "team" },
    { op: "cancel", id }
  )
  return { text: JSON.stringify(fields), id }
}

const kinds: ReadonlyArray<(from: Random) => Case> = [
  (from) => ({ line: noise(from), answer: invalid }),
  (from) => ({ line: bytes(pick(from, "", " ", "\t \t", "   ")), answer: invalid }),
  (from) => ({ line: bytes(pick(from, "null", "true", '"send"', "[]", huge(from), deep(from))), answer: invalid }),
  (from) => {
    const { text } = valid(from)
    return { line: bytes(text.slice(0, 1 + from.below(text.length - 1))), answer: invalid }
  },
  (from) => ({ line: bytes(`${valid(from).text}${pick(from, " ", "")}${valid(from).text}`), answer: invalid }),
  (from) => ({ line: bytes(`${valid(from).text}${pick(from, ",", "]", "x", "\u0000")}`), answer: invalid }),
  (from) => {
    const value = pick(from, "null", "1", "[]", "{}", "true", huge(from), deep(from), '""', '"\\u0000"', '"\\ud800"')
    const field = pick(from, "id", "input", "session", "scope", "shared", "cwd")
    return { line: bytes(`{"op":"send","id":"a","input":"b","${field}":${value}}`), answer: invalid }
  },
  (from) => {
    const value = pick(from, "null", "[]", "{}", "true", huge(from), deep(from), "-1", "1e400", '"\\u0000"', '"../x"')
    const field = pick(from, "ask", "answers", "decision", "id", "session", "scope", "shared")
    const ask = `"ask":"ask-${"0".repeat(32)}"`
    return from.chance(0.5)
      ? {
          line: bytes(`{"op":"answer",${ask},"decision":"correct","message":"m","${field}":${value}}`),
          answer: invalid
        }
      : {
          line: bytes(`{"op":"list","${pick(from, "limit", "after", "id", "scope", "shared")}":${value}}`),
          answer: invalid
        }
  },
  (from) => ({
    line: bytes(`{"op":${pick(from, '"SEND"', '"__proto__"', '"toString"', huge(from), deep(from))},"id":"a"}`),
    answer: invalid
  }),
  (from) => ({
    line: bytes(
      JSON.stringify({ op: "send", id: "a", input: "b", session: pick(from, "index", "../x", "a/b", "x.d") })
    ),
    answer: invalid
  }),
  (from) => {
    const { id, text } = valid(from)
    const mangled = bytes(text)
    const at = 1 + from.below(mangled.length - 2)
    const byte = pick(from, 0x00, 0xc0, 0xff)
    return from.chance(0.5)
      ? { line: mangled.with(at, byte), answer: invalid }
      : { line: bytes(` \t${text} \r`), answer: { pong: id } }
  },
  (from) => {
    const { id, text } = valid(from)
    const extra = pick(from, '"__proto__":{"op":"x"}', '"constructor":1', `"x":${deep(from)}`, `"y":${huge(from)}`)
    return { line: bytes(`${text.slice(0, -1)},${extra}}`), answer: { pong: id } }
  },
  (from) => {
    const { id, text } = valid(from)
    return { line: bytes(text), answer: { pong: id } }
  }
]

/** Rare, since each is a megabyte. */
const big = (from: Random): Case => {
  const over = from.chance(0.5)
  const { id, text } = valid(from)
  const start = `${text.slice(0, -1)},"x":"`
  const line = bytes(
    `${start}${"x".repeat(maxLineBytes - bytes(start).length - 2 + (over ? 1 + from.below(70_000) : 0))}"}`
  )
  return { line, answer: over ? { code: "EMSGSIZE" } : { pong: id } }
}

const glue = (from: Random, lines: ReadonlyArray<Uint8Array>): Uint8Array =>
  Buffer.concat(lines.flatMap((line) => [line, from.chance(0.3) ? bytes("\r\n") : bytes("\n")]))

/** Pieces of every size, most of them small. */
function* cut(from: Random, whole: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < whole.length;) {
    const size = pick(from, 1, 2, 1 + from.below(100), 1 + from.below(5000), 1 + from.below(200_000))
    yield whole.subarray(at, at + size)
    at += size
  }
}

const holds = Effect.fnUntraced(function* (seed: number, batches: number, perBatch: number) {
  const from = random(seed)
  const { path } = yield* listen({ root: yield* temporaryFolder, name: "agent/fuzz.sock" }, answerPongs)
  const [client, neighbour] = [yield* connectTo(path), yield* connectTo(path)]
  for (let batch = 0; batch < batches; batch++) {
    const cases = Array.from({ length: perBatch }, () =>
      from.chance(0.002) ? big(from) : (kinds[from.below(kinds.length)] ?? big)(from)
    )
    for (const piece of cut(
      from,
      glue(
        from,
        cases.map(({ line }) => line)
      )
    )) {
      yield* client.send(piece)
      // Otherwise the system would join what was cut.
      if (from.chance(0.05)) yield* Effect.yieldNow({ priority: 1 })
    }
    for (const { answer, line } of cases) {
      const got = yield* client.next
      const context = `seed ${seed}, batch ${batch}, line ${JSON.stringify(new TextDecoder().decode(line.subarray(0, 200)))}`
      if ("code" in answer) assert.deepInclude(got, { type: "error", code: answer.code }, context)
      else assert.deepStrictEqual(got, { type: "pong", id: answer.pong }, context)
    }
    yield* neighbour.send(`{"op":"ping","id":"n${batch}"}\n`)
    assert.deepStrictEqual(yield* neighbour.next, { type: "pong", id: `n${batch}` })
  }
})

const given = Number(process.env["DAYBOOK_SEED"] ?? Number.NaN)
for (const seed of Number.isNaN(given) ? [1, 20_260, 776_531] : [given]) {
  it.scoped(`FR-4: each of 3,000 lines of every kind gets its answer, and the connection goes on (seed ${seed})`, () =>
    holds(seed, 15, 200)
  )
}

it.scoped("FR-3: a conversation cut at every byte, each piece by itself, is answered the same", () =>
  Effect.gen(function* () {
    const { path } = yield* listen({ root: yield* temporaryFolder, name: "agent/cut.sock" }, answerPongs)
    const whole = bytes('{"op":"ping","id":"a"}\r\n\n{"op":"ping","id":"ä"}\n{"op":"ping"}\n')
    for (let at = 0; at <= whole.length; at++) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* connectTo(path)
          yield* client.send(whole.subarray(0, at))
          // Whatever was whole before the cut is answered before the rest is sent.
          const before = whole.subarray(0, at).filter((byte) => byte === 0x0a).length
          const answers: Array<unknown> = []
          for (let line = 0; line < before; line++) answers.push(yield* client.next)
          yield* client.send(whole.subarray(at))
          yield* client.end
          answers.push(...(yield* client.rest))
          assert.lengthOf(answers, 4)
          assert.deepStrictEqual(
            [answers[0], answers[2], answers[3]],
            [{ type: "pong", id: "a" }, { type: "pong" }, { type: "pong" }]
          )
          assert.deepInclude(answers[1], { type: "error", code: "EINVAL" })
        })
      )
    }
  })
)
