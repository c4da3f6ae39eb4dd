import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck, Schema } from "effect"
import { maxLineBytes } from "../../packages/server/src/socket/Request.ts"
import {
  type Answer,
  decode,
  decodeLine,
  deltaTexts,
  encodeFrame,
  Frame,
  maxDeltaLength,
  Request,
  type WireError
} from "../../packages/server/src/socket/Wire.ts"

/** What of an answer goes with what: decided by the operation, not by the form of its fields. */
const answerFits = ({ answers, decision, message }: Answer) =>
  (answers === undefined) !== (decision === undefined) && (decision === "correct") === (message !== undefined)

const bytes = (text: string) => new TextEncoder().encode(text)
const decoded = (text: string) => decodeLine(bytes(text))
const accepted = (fields: unknown): Request => Either.getOrThrow(decoded(JSON.stringify(fields)))
const refused = (line: string | Uint8Array): WireError =>
  Either.getOrThrow(Either.flip(typeof line === "string" ? decoded(line) : decodeLine(line)))

const send = { op: "send", id: "m1", input: "hello" }
const run = `ctx-${"0".repeat(32)}`
const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`

describe("requests that are taken", () => {
  const cases: ReadonlyArray<readonly [string, object, object]> = [
    ["send needs id and input only", send, { ...send, session: "default", scope: "private" }],
    ["send takes a cwd", { ...send, cwd: "/work" }, { ...send, session: "default", scope: "private", cwd: "/work" }],
    [
      "send takes a shared space",
      { ...send, session: "s", scope: "shared", shared: "team" },
      { ...send, session: "s", scope: "shared", shared: "team" }
    ],
    ["send takes scope temp", { ...send, scope: "temp" }, { ...send, session: "default", scope: "temp" }],
    ["resume needs nothing", { op: "resume" }, { op: "resume", session: "default", scope: "private" }],
    [
      "resume takes a session's id and a cursor",
      { op: "resume", session: "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV", after: "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV.2" },
      {
        op: "resume",
        session: "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        scope: "private",
        after: "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV.2"
      }
    ],
    ["cancel takes a run", { op: "cancel", id: run }, { op: "cancel", id: run, session: "default", scope: "private" }],
    ["ping needs nothing", { op: "ping" }, { op: "ping" }],
    ["ping keeps its id", { op: "ping", id: "p1" }, { op: "ping", id: "p1" }],
    ["FR-2: what a ping does not know does not matter", { op: "ping", id: 5, session: [] }, { op: "ping" }],
    ["FR-2: unknown fields are ignored", { ...send, also: { a: 1 } }, { ...send, session: "default", scope: "private" }]
  ]
  it.each(cases)("%s", (_, given, request) => {
    assert.deepStrictEqual(accepted(given), request)
  })

  it("NA-2: sessions may be called list, current and by-cwd", () => {
    for (const session of ["list", "current", "by-cwd", "a".repeat(64), "0+_.-"]) {
      const request = accepted({ ...send, session })
      assert.strictEqual("session" in request && request.session, session)
    }
  })

  it("FR-4: `__proto__` is a field like any other, and gives nothing", () => {
    const request = Either.getOrThrow(decoded('{"op":"ping","__proto__":{"id":"x"},"constructor":1}'))
    assert.deepStrictEqual(request, { op: "ping" })
    assert.strictEqual(Object.getPrototypeOf(request), Object.prototype)
    assert.match(refused('{"__proto__":{"op":"ping"}}').message, /"op" is missing/)
    assert.match(refused('{"op":"send","id":"a","__proto__":{"input":"x"}}').message, /"input" is missing/)
  })

  it("FR-4: of a key given twice the last counts", () => {
    assert.deepStrictEqual(Either.getOrThrow(decoded('{"op":"send","op":"ping"}')), { op: "ping" })
  })

  it("FR-4: nesting as deep as a frame allows is read", () => {
    const request = decoded(`{"op":"ping","x":${deep(500_000)}}`)
    assert.deepStrictEqual(Either.getOrThrow(request), { op: "ping" })
  })

  it("FR-3: a request of exactly 1 MiB is taken", () => {
    const input = "x".repeat(maxLineBytes - JSON.stringify({ ...send, input: "" }).length)
    const line = bytes(JSON.stringify({ ...send, input }))
    assert.strictEqual(line.length, maxLineBytes)
    assert.isTrue(Either.isRight(decodeLine(line)))
    assert.strictEqual(refused(new Uint8Array(maxLineBytes + 1).fill(0x20)).code, "EMSGSIZE")
  })
})

describe("lines that are no request", () => {
  const cases: ReadonlyArray<readonly [string, string | Uint8Array, RegExp]> = [
    ["an empty line", "", /empty/],
    ["a line of blanks", " \t ", /empty/],
    ["no JSON", "hello", /not valid JSON/],
    ["half a value", '{"op":"ping"', /not valid JSON/],
    ["1 MiB of opening brackets", "[".repeat(maxLineBytes), /not valid JSON/],
    ["1 MiB of opening objects", '{"a":'.repeat(maxLineBytes / 5 - 1), /not valid JSON/],
    ["two values", '{"op":"ping"}{"op":"ping"}', /more than one/],
    ["two values with a blank between", '{"op":"ping"} 1', /more than one/],
    ["a list", "[]", /not a JSON object/],
    ["a deep list", deep(500_000), /not a JSON object/],
    ["null", "null", /not a JSON object/],
    ["a text", '"ping"', /not a JSON object/],
    ["a number beyond all bounds", `1${"0".repeat(400)}`, /not a JSON object/],
    ["bytes that are no UTF-8", Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d), /UTF-8/],
    ["an overlong encoding", Uint8Array.of(0x22, 0xc0, 0x80, 0x22), /UTF-8/],
    ["a surrogate in UTF-8", Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), /UTF-8/],
    ["a byte order mark", Uint8Array.of(0xef, 0xbb, 0xbf, ...bytes('{"op":"ping"}')), /not valid JSON/],
    ["no op", "{}", /"op" is missing/],
    ["an op that is no text", '{"op":1}', /"op" has to be/],
    ["an unknown op", '{"op":"delete"}', /"op" has to be send, resume, cancel, answer, status, list or ping/],
    ["an op named like a property of objects", '{"op":"constructor"}', /"op" has to be/],
    ["send without id", '{"op":"send","input":"x"}', /"id" is missing/],
    ["send without input", '{"op":"send","id":"a"}', /"input" is missing/],
    ["cancel without id", '{"op":"cancel"}', /"id" is missing/]
  ]
  it.each(cases)("FR-4: %s is EINVAL", (_, line, words) => {
    const error = refused(line)
    assert.strictEqual(error.code, "EINVAL")
    assert.match(error.message, words)
    assert.isBelow(error.message.length, 300)
    assert.notInclude(error.message, "\n")
  })

  const values: ReadonlyArray<readonly [string, unknown]> = [
    ["null", null],
    ["a number", 1e308],
    ["a list", ["a"]],
    ["an object", {}],
    ["a truth", true]
  ]
  for (const field of ["id", "session", "scope", "shared", "cwd", "input"]) {
    it.each(values)(`FR-4: send with %s as ${field} is EINVAL`, (_, value) => {
      const error = refused(JSON.stringify({ ...send, scope: "private", [field]: value }))
      assert.strictEqual(error.code, "EINVAL")
      assert.include(error.message, `"${field}"`)
      assert.strictEqual(error.id, field === "id" ? undefined : "m1")
    })
  }
  it.each(values)("FR-4: resume with %s as after is EINVAL", (_, after) => {
    assert.match(refused(JSON.stringify({ op: "resume", after })).message, /"after"/)
  })

  const badNames = [
    "",
    ".",
    "..",
    "a/b",
    "../x",
    "a.sock",
    "a.d",
    "-a",
    ".a",
    "a b",
    "a\n",
    "a\u0000",
    "ä",
    "a".repeat(65)
  ]
  for (const field of ["id", "session", "shared"]) {
    it.each(badNames)(`NA-1: %j is no ${field}`, (name) => {
      const error = refused(JSON.stringify({ ...send, scope: "shared", shared: "team", [field]: name }))
      assert.strictEqual(error.code, "EINVAL")
      assert.include(error.message, `"${field}" has to be`)
    })
  }
  it.each(["", "a/b", "evt_a/b", "../x", "evt_\u0000", `evt_${"a".repeat(99)}`])("DC-6: %j is no cursor", (after) => {
    assert.match(refused(JSON.stringify({ op: "resume", after })).message, /"after" has to be/)
  })
  it("NA-2: no session may be called index", () => {
    for (const op of ["send", "resume", "cancel"]) {
      assert.match(refused(JSON.stringify({ ...send, op, session: "index" })).message, /"session" .*"index"/)
    }
  })

  it.each([
    ["a NUL", "a\u0000b", /NUL/],
    ["half a surrogate pair", "a\ud800", /Unicode/],
    ["nothing", "", /empty/]
  ] as const)("FR-4: input of %s is EINVAL", (_, input, words) => {
    assert.match(refused(JSON.stringify({ ...send, input })).message, words)
  })

  it.each([
    ["relative", "work"],
    ["empty", ""],
    ["upwards", "/work/../etc"],
    ["with NUL", "/work\u0000"],
    ["too long", `/${"a/".repeat(2100)}`],
    ["with a name too long", `/${"ä".repeat(128)}`]
  ] as const)("DC-1: a cwd that is %s is EINVAL before any file is asked for", (_, cwd) => {
    assert.match(refused(JSON.stringify({ ...send, cwd })).message, /"cwd" has to be an absolute path/)
  })

  it.each([
    ["shared without a space", { scope: "shared" }],
    ["private with one", { shared: "team" }],
    ["temp with one", { scope: "temp", shared: "team" }],
    ["another word", { scope: "public" }]
  ] as const)("DC-2: scope %s is EINVAL for every operation", (_, fields) => {
    for (const op of ["send", "resume", "cancel"]) {
      assert.strictEqual(refused(JSON.stringify({ ...send, ...fields, op })).code, "EINVAL")
    }
  })

  it("FR-5: an answer names the request by its id, and quotes nothing of it", () => {
    const secret = "sk-very-secret"
    for (const fields of [{ input: 1 }, { session: secret.repeat(9) }, { cwd: secret }, { op: secret }]) {
      const error = refused(JSON.stringify({ ...send, ...fields }))
      assert.strictEqual(error.id, "m1")
      assert.notInclude(error.message, secret)
    }
    assert.notInclude(refused(`{"op": ${secret}}`).message, secret)
  })

  it("FR-3: a line too long is EMSGSIZE", () => {
    const error = Either.getOrThrow(Either.flip(decode({ _tag: "TooLong" })))
    assert.strictEqual(error.code, "EMSGSIZE")
  })
})

describe("frames", () => {
  it("FR-1: every frame is one line that its schema reads back", () => {
    const frames: ReadonlyArray<Frame> = [
      { type: "start", id: "m1", run, model: "acme/m1" },
      { type: "delta", id: "m1", run, text: "a\nb\r\u2028\u0000" },
      { type: "message", id: "m1", run, role: "assistant", content: [{ type: "text", text: "🎉" }] },
      { type: "error", code: "EINVAL", message: "no" },
      { type: "done", id: "m1", run, status: "cancelled" },
      { type: "pong", id: "p1" },
      { type: "done", id: "evt_1", seq: 8, time: "2026-01-01T00:00:00.000Z", run, status: "ok" }
    ]
    for (const frame of frames) {
      const line = encodeFrame(frame)
      assert.strictEqual(line.indexOf("\n"), line.length - 1)
      assert.deepStrictEqual(Schema.decodeUnknownSync(Frame)(JSON.parse(line)), frame)
    }
  })

  it("FR-3: a frame that would be too long is cut, says so, and keeps its names", () => {
    const wide = "\u0001".repeat(400_000)
    const row = { id: "evt_1", seq: 4, time: "2026-01-01T00:00:00.000Z", run }
    const frames: ReadonlyArray<Frame> = [
      { type: "message", run, role: "assistant", content: [{ type: "text", text: wide }] },
      { type: "tool_call", ...row, tool_call_id: "c", name: "write", input: { content: wide } },
      {
        type: "tool_call",
        ...row,
        tool_call_id: "c",
        name: "write",
        input: Array.from({ length: 9 }, () => "é".repeat(99_999))
      },
      {
        type: "tool_call",
        ...row,
        tool_call_id: "c",
        name: "write",
        input: Array.from({ length: 400_000 }, () => 1.5)
      },
      { type: "error", code: "EIO", message: wide }
    ]
    for (const frame of frames) {
      const line = encodeFrame(frame)
      assert.isAtMost(Buffer.byteLength(line), maxLineBytes + 1)
      const read: unknown = JSON.parse(line)
      assert.deepInclude(read, { type: frame.type, truncated: true })
      if ("run" in frame) assert.deepInclude(read, { run })
    }
  })

  it.prop(
    "FR-7: a text in deltas is the text again, each well-formed and within its bound",
    [
      FastCheck.array(FastCheck.constantFrom("a", "🎉", "ä", "x".repeat(40_000), "🎉".repeat(20_000)), {
        maxLength: 12
      })
    ],
    ([parts]) => {
      const text = parts.join("")
      const pieces = deltaTexts(text)
      assert.strictEqual(pieces.join(""), text)
      for (const piece of pieces) {
        assert.isAtMost(piece.length, maxDeltaLength)
        assert.isFalse(/\p{Surrogate}/u.test(piece))
        assert.isAtMost(Buffer.byteLength(encodeFrame({ type: "delta", run, text: piece })), maxLineBytes)
      }
    }
  )

  it.prop("FR-4: what a schema makes of a request, the decoder reads", [Request], ([request]) => {
    const shared = "shared" in request && request.shared !== undefined
    const fits =
      request.op === "answer"
        ? answerFits(request) && (request.scope === "shared") === shared
        : request.op === "ping" || request.op === "status" || (request.scope === "shared") === shared
    const result = decoded(JSON.stringify(request))
    assert.strictEqual(Either.isRight(result), fits)
    if (Either.isRight(result)) assert.deepStrictEqual(result.right, request)
  })
})
