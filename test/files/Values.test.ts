/** The single values of a session's folder. */
import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import { type KeptAddress, Meta } from "../../packages/files/src/layout/Layout.ts"
import { valueFiles } from "../../packages/files/src/render/Values.ts"
import { ActivityID, MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft, type SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import * as Fold from "../../packages/transcript/src/Fold.ts"
import { forAll } from "../support/Cases.ts"
import { folded, stored, textsFrom } from "./support/Logs.ts"
import { runnerLog } from "./support/RunnerLogs.ts"

const address: KeptAddress = { scope: "private", uid: 1000, kind: "agent", name: "coder", session: "default" }
const created = draft("session.created", { location: { directory: "/work" } })
const valuesOf = (events: ReadonlyArray<SessionEvent>) =>
  valueFiles(folded(events).state, address, (latest) => `${textsFrom(events)(latest)}\n`)
const filesOf = (...drafts: ReadonlyArray<Draft>) => valuesOf(stored([created, ...drafts]))

const activityID = ActivityID.make("act_1")
const started = draft("session.next.activity.started", { activityID, trigger: "resume" })
const ended = (outcome: "completed" | "failed" | "interrupted", type = "aborted") =>
  draft("session.next.activity.settled", {
    activityID,
    outcome,
    ...(outcome === "completed" ? {} : { error: { type, message: "no" } })
  })

it("FI-3: a new session has every value but latest.md", () => {
  assert.deepStrictEqual([...filesOf().keys()], ["cwd", "created_at", "meta.json", "updated_at", "state"])
})

it("DC-3: the state is one of four words, by how the last run ended", () => {
  const states = [
    [[], "idle"],
    [[started], "active"],
    [[started, ended("completed")], "done"],
    [[started, ended("failed")], "error"],
    [[started, ended("interrupted")], "idle"],
    [[started, ended("interrupted", "process.ended")], "error"]
  ] as const
  for (const [drafts, word] of states) assert.strictEqual(filesOf(...drafts).get("state"), `${word}\n`)
})

it("FR-7: latest.md is the text of the last run that completed, and a newline", () => {
  const assistantMessageID = MessageID.make("msg_a")
  const says = (text: string) => [
    draft("session.next.step.started", { assistantMessageID, agent: "build", model: { providerID: "p", id: "m" } }),
    draft("session.next.text.started", { assistantMessageID, textID: "t" }),
    draft("session.next.text.ended", { assistantMessageID, textID: "t", text }),
    draft("session.next.step.ended", {
      assistantMessageID,
      finish: "stop",
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
    })
  ]
  const whole = "é".repeat(Fold.textLimit)
  assert.strictEqual(filesOf(started, ...says(whole), ended("completed")).get("latest.md"), `${whole}\n`)
  const failed = filesOf(started, ...says("one\n"), ended("completed"), started, ...says("two"), ended("failed"))
  assert.strictEqual(failed.get("latest.md"), "one\n\n")
})

it("CW-7: cwd is the folder of the last run, as its client named it, until the session is moved", () => {
  const promoted = draft("session.next.prompt.promoted", {
    messageID: MessageID.make("msg_1"),
    prompt: { text: "go", client: { id: "m1", cwd: "/work/api" } },
    timeCreated: 0
  })
  const queued = draft("session.next.activity.started", { activityID, trigger: "queue" })
  assert.strictEqual(filesOf(queued, promoted).get("cwd"), "/work/api\n")
  const moved = draft("session.next.moved", { location: { directory: "/other" } })
  assert.strictEqual(filesOf(queued, promoted, moved).get("cwd"), "/other\n")
})

it("FI-4: below its root a session's folder is shown as its agent sees it", () => {
  const placed = draft("session.next.addressed", { address, root: "/work" })
  assert.strictEqual(filesOf(placed).get("cwd"), "/\n")
})

it("FI-12: meta.json says where the session is kept, and what it has come to", () => {
  const meta = JSON.parse(filesOf(started, ended("completed")).get("meta.json") ?? "")
  assert.deepStrictEqual(meta, {
    version: 1,
    session_id: "ses_s",
    scope: "private",
    kind: "agent",
    name: "coder",
    session: "default",
    agent: "build",
    last_status: "ok",
    last_run: meta.last_run,
    cost_usd: 0,
    tokens: { input: 0, output: 0, reasoning: 0 },
    seq: 2
  })
})

it("FL-3: each value is text and one newline; meta.json is one line in the order of its schema", () =>
  forAll([runnerLog("s")], 24, (drafts) => {
    const files = valuesOf(stored(drafts))
    for (const content of files.values()) {
      assert.isTrue(content.endsWith("\n"))
      assert.strictEqual(Buffer.from(content).toString(), content)
    }
    const meta = (files.get("meta.json") ?? "").slice(0, -1)
    const decoded = Schema.decodeUnknownSync(Meta, { onExcessProperty: "error" })(JSON.parse(meta))
    assert.strictEqual(JSON.stringify(decoded), meta)
    assert.include(["active\n", "idle\n", "done\n", "error\n"], files.get("state"))
  }))
