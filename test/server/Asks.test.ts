/** Permissions and questions, as clients are asked and answer. */
import { it } from "@effect/vitest"
import { Asks } from "@daybook/server"
import { Effect, Struct } from "effect"
import { assert } from "vitest"
import { callParts, finish, says, streams } from "../support/ScriptedModel.ts"
import { connect, fresh, script, textOf, typesOf, type Client, type Frame } from "./support/Served.ts"

const served = (patience?: string) =>
  Effect.suspend(() => {
    const asks = Asks.make(patience === undefined ? {} : { patience: "50 millis" })
    return fresh({ runtime: { permissionAsker: asks.layer, questions: true }, serve: { asks } })
  })

const command = (text = "echo made") => streams(...callParts("c1", "bash", { command: text }), finish("tool-calls"))
const questions = [{ question: "Which?", options: [{ label: "one" }, { label: "two" }] }, { question: "Why?" }]
const question = streams(...callParts("q1", "question", { questions }), finish("tool-calls"))

/** A run that has come to an ask, and the frame of it. */
const asked = (client: Client, path: Effect.Effect.Success<ReturnType<typeof served>>, first = command()) =>
  Effect.gen(function* () {
    yield* script(path, ({ answer }) => Effect.zipRight(answer(first), answer(says("done with it"))))
    yield* client.ask({ op: "send", id: "m1", input: "go" })
    const frames = yield* client.untilType("ask")
    return { ask: frames.at(-1) ?? {}, frames }
  })

const resultOf = (frames: ReadonlyArray<Frame>) => frames.find(({ type }) => type === "tool_result")

it.scopedLive(
  "SO-95: a permission is an ask with what it is about, behind its call, and once allowed the call runs",
  () =>
    Effect.gen(function* () {
      const server = yield* served()
      const client = yield* connect(server.path)
      const { ask, frames } = yield* asked(client, server)
      assert.deepStrictEqual(typesOf(frames), ["start", "tool_call", "ask"])
      assert.deepInclude(ask, {
        id: "m1",
        run: frames[0]?.["run"],
        kind: "permission",
        permission: "bash",
        tool_call_id: "c1",
        tool: "bash",
        subject: { type: "command", command: "echo made", folder: ".", warnings: [] },
        agent: "build",
        cwd: "/",
        notes: []
      })
      assert.match(String(ask["session_id"]), /^ses_/)
      assert.match(String(ask["ask"]), /^ask-[0-9a-f]{32}$/)
      yield* client.ask({ op: "answer", id: "a1", ask: ask["ask"], decision: "once" })
      const rest = yield* client.untilType("done")
      assert.deepInclude(rest, { type: "answered", id: "a1", ask: ask["ask"], decision: "once" })
      assert.deepInclude(rest, { type: "answered", id: "m1", run: ask["run"], ask: ask["ask"], decision: "once" })
      assert.include(textOf(resultOf(rest)), "made")
      assert.strictEqual(rest.at(-1)?.["status"], "ok")
    })
)

for (const [what, answer, check] of [
  ["declined stops the run", { decision: "decline" }, (rest: ReadonlyArray<Frame>) => rest.at(-1)?.["status"] !== "ok"],
  [
    "corrected is refused with the words, and the run goes on",
    { decision: "correct", message: "use another tool" },
    (rest: ReadonlyArray<Frame>) =>
      rest.some(({ code, message }) => code === "EACCES" && String(message).includes("use another tool")) &&
      rest.at(-1)?.["status"] === "ok"
  ]
] as const) {
  it.scopedLive(`SO-96: a permission that is ${what}`, () =>
    Effect.gen(function* () {
      const server = yield* served()
      const client = yield* connect(server.path)
      const { ask } = yield* asked(client, server)
      yield* client.ask({ op: "answer", ask: ask["ask"], ...answer })
      assert.isTrue(check(yield* client.untilType("done")))
    })
  )
}

it.scopedLive(
  "SO-96: what is allowed for the session is not asked again in it, and a typed pattern is saved for the folder",
  () =>
    Effect.gen(function* () {
      const server = yield* served()
      const client = yield* connect(server.path)
      const { ask } = yield* asked(client, server)
      yield* client.ask({ op: "answer", ask: ask["ask"], decision: "session" })
      assert.strictEqual((yield* client.untilType("done")).at(-1)?.["status"], "ok")
      yield* script(server, ({ answer }) => Effect.zipRight(answer(command()), answer(says("done again"))))
      yield* client.ask({ op: "send", id: "m2", input: "again" })
      const second = yield* client.untilType("done")
      assert.notInclude(typesOf(second), "ask")
      yield* script(server, ({ answer }) => Effect.zipRight(answer(command("echo other")), answer(says("done"))))
      yield* client.ask({ op: "send", id: "m3", input: "other" })
      const other = (yield* client.untilType("ask")).at(-1)
      yield* client.ask({ op: "answer", ask: other?.["ask"], decision: "always", always: ["echo *"] })
      const rest = yield* client.untilType("done")
      assert.deepInclude(rest[0], { type: "answered", decision: "always" })
      yield* script(server, ({ answer }) => Effect.zipRight(answer(command("echo third")), answer(says("done"))))
      yield* client.ask({ op: "send", id: "m4", session: "elsewhere", input: "third" })
      assert.notInclude(typesOf(yield* client.untilType("done")), "ask")
    })
)

it.scopedLive("SO-95: of a permission and a question that are open together, each is answered by itself", () =>
  Effect.gen(function* () {
    const server = yield* served()
    const client = yield* connect(server.path)
    const both = streams(
      ...callParts("c1", "bash", { command: "echo made" }),
      ...callParts("q1", "question", { questions }),
      finish("tool-calls")
    )
    const { frames } = yield* asked(client, server, both)
    const asks = [...frames, ...(yield* client.untilType("ask"))].filter(({ type }) => type === "ask")
    const askOf = (kind: string) => asks.find((each) => each["kind"] === kind)?.["ask"]
    yield* client.ask({ op: "answer", id: "a1", ask: askOf("permission"), decision: "once" })
    const answered = (frame: Frame) => frame.type === "answered" && frame["id"] === "m1"
    const first = yield* client.until(answered)
    assert.deepStrictEqual(first.filter(answered).map(Struct.get("ask")), [askOf("permission")])
    yield* client.ask({ op: "answer", id: "a2", ask: askOf("question"), answers: ["two", "because"] })
    const rest = yield* client.untilType("done")
    assert.deepStrictEqual(rest.filter(answered).map(Struct.get("ask")), [askOf("question")])
  })
)

it.scopedLive("SO-96: of two answers the first counts, and the other is EALREADY", () =>
  Effect.gen(function* () {
    const server = yield* served()
    const [client, other] = [yield* connect(server.path), yield* connect(server.path)]
    const { ask } = yield* asked(client, server)
    yield* other.ask({ op: "resume" })
    const seen = (yield* other.untilType("ask")).at(-1)
    assert.strictEqual(seen?.["ask"], ask["ask"])
    yield* other.ask({ op: "answer", id: "first", ask: ask["ask"], decision: "once" })
    yield* other.until(({ id, type }) => type === "answered" && id === "first")
    yield* client.ask({ op: "answer", id: "late", ask: ask["ask"], decision: "decline" })
    const rest = yield* client.until(({ id }) => id === "late")
    assert.deepInclude(rest.at(-1), { type: "error", code: "EALREADY" })
    assert.deepInclude(yield* client.untilType("done").pipe(Effect.map((all) => [...rest, ...all].at(-1))), {
      status: "ok"
    })
  })
)

it.scopedLive("SO-97: an ask stays open when its client goes, and a resume shows it again", () =>
  Effect.gen(function* () {
    const server = yield* served()
    const [client, other] = [yield* connect(server.path), yield* connect(server.path)]
    const { ask } = yield* asked(client, server)
    yield* client.leave
    yield* other.ask({ op: "resume" })
    const again = (yield* other.untilType("ask")).at(-1)
    assert.deepInclude(again, { ask: ask["ask"], run: ask["run"], kind: "permission" })
    yield* other.ask({ op: "answer", ask: ask["ask"], decision: "once" })
    assert.strictEqual((yield* other.untilType("done")).at(-1)?.["status"], "ok")
  })
)

it.scopedLive("SO-98: where every client of the session has ended its side, a permission is refused at once", () =>
  Effect.gen(function* () {
    const server = yield* served()
    const client = yield* connect(server.path)
    yield* script(server, ({ answer }) => Effect.zipRight(answer(command()), answer(says("without it"))))
    yield* client.ask({ op: "send", id: "m1", input: "go" })
    yield* client.finish
    const frames = yield* client.untilType("done")
    assert.deepInclude(
      frames.find(({ type }) => type === "error"),
      { code: "EACCES", recoverable: true, tool_call_id: "c1" }
    )
    assert.strictEqual(frames.at(-1)?.["status"], "ok")
  })
)

it.scopedLive(
  "SO-98: a permission that nobody answers in time is refused, which the model reads, and the run goes on",
  () =>
    Effect.gen(function* () {
      const server = yield* served("short")
      const client = yield* connect(server.path)
      const { ask } = yield* asked(client, server)
      assert.isNumber(ask["time_left_ms"])
      const rest = yield* client.untilType("done")
      assert.deepInclude(rest, { type: "answered", id: "m1", run: ask["run"], ask: ask["ask"], decision: "expired" })
      const refusal = rest.find(({ code }) => code === "EACCES")
      assert.include(String(refusal?.["message"]), "nobody answered within 50ms, so nothing was done")
      assert.strictEqual(rest.at(-1)?.["status"], "ok")
    })
)

it.scopedLive("SO-95: a question is an ask with its parts, and the model reads the answers", () =>
  Effect.gen(function* () {
    const server = yield* served()
    const client = yield* connect(server.path)
    const { ask } = yield* asked(client, server, question)
    assert.deepInclude(ask, { kind: "question", tool_call_id: "q1" })
    assert.deepStrictEqual(ask["questions"], questions)
    yield* client.ask({ op: "answer", id: "a0", ask: ask["ask"], answers: ["two"] })
    assert.deepInclude(yield* client.next, { type: "error", id: "a0", code: "EINVAL" })
    yield* client.ask({ op: "answer", id: "a1", ask: ask["ask"], answers: ["two", "because"] })
    const rest = yield* client.untilType("done")
    assert.include(textOf(resultOf(rest)), "because")
    assert.deepInclude(rest, { type: "answered", id: "m1", run: ask["run"], ask: ask["ask"], decision: "answered" })
    yield* client.ask({ op: "answer", id: "a2", ask: ask["ask"], answers: ["one", "late"] })
    assert.deepInclude(yield* client.next, { type: "error", id: "a2", code: "EALREADY" })
  })
)

it.scopedLive("SO-99: every answer that fits no ask is refused with a code, and the ask stays open", () =>
  Effect.gen(function* () {
    const server = yield* served()
    const client = yield* connect(server.path)
    const { ask } = yield* asked(client, server)
    const good = { op: "answer", id: "a", ask: ask["ask"] }
    for (const [request, code] of [
      [{ ...good }, "EINVAL"],
      [{ ...good, decision: "yes" }, "EINVAL"],
      [{ ...good, decision: "once", answers: ["x"] }, "EINVAL"],
      [{ ...good, decision: "correct" }, "EINVAL"],
      [{ ...good, decision: "once", message: "why" }, "EINVAL"],
      [{ ...good, decision: "dismiss" }, "EINVAL"],
      [{ ...good, answers: ["x"] }, "EINVAL"],
      [{ ...good, answers: [] }, "EINVAL"],
      [{ ...good, answers: "x" }, "EINVAL"],
      [{ ...good, ask: 7, decision: "once" }, "EINVAL"],
      [{ ...good, ask: "ask-1", decision: "once" }, "EINVAL"],
      [{ ...good, ask: `ask-${"0".repeat(32)}`, decision: "once" }, "ENOENT"],
      [{ ...good, session: "other", decision: "once" }, "ENOENT"],
      [{ ...good, scope: "shared", decision: "once" }, "EINVAL"],
      [{ ...good, scope: "shared", shared: "lab", decision: "once" }, "EACCES"]
    ] as const) {
      yield* client.ask(request)
      const { message, ...refused } = yield* client.next
      assert.deepInclude(refused, { type: "error", id: "a", code }, JSON.stringify(request))
      assert.isNotEmpty(message)
    }
    yield* client.ask({ ...good, decision: "once" })
    assert.strictEqual((yield* client.untilType("done")).at(-1)?.["status"], "ok")
  })
)

it.scopedLive("SO-92: status says what is active and what waits, with the asks that are open", () =>
  Effect.gen(function* () {
    const server = yield* served()
    const client = yield* connect(server.path)
    yield* client.ask({ op: "status", id: "s0" })
    const { lag_ms: lag, ...idle } = yield* client.next
    assert.deepStrictEqual(idle, { type: "status", id: "s0", kind: "agent", name: "build", runs: [] })
    assert.isNumber(lag)
    const { ask } = yield* asked(client, server)
    yield* client.ask({ op: "send", id: "m2", input: "next" })
    const queued = yield* client.next
    yield* client.ask({ op: "status" })
    const status = yield* client.next
    assert.deepStrictEqual(status["runs"], [
      { session: "default", scope: "private", run: ask["run"], client_id: "m1", state: "active", asks: [ask["ask"]] },
      { session: "default", scope: "private", run: queued["run"], client_id: "m2", state: "waiting" }
    ])
  })
)
