/** Facts about live shells, as events hold them. */
import { assert, it } from "@effect/vitest"
import { Either, FastCheck as fc, Redacted, Schema } from "effect"
import * as Registry from "../../../packages/log/src/events/Registry.ts"
import { shellDefinitions } from "../../../packages/log/src/events/LiveShellEvents.ts"
import type { ExecResult } from "../../../packages/shell/src/domain/ExecResult.ts"
import { CommandBlocked } from "../../../packages/shell/src/domain/ShellError.ts"
import { Target } from "../../../packages/shell/src/domain/Target.ts"
import * as ShellRecord from "../../../packages/shell/src/record/ShellRecord.ts"
import { cases } from "../../support/Cases.ts"

const result = (more: Partial<ExecResult> = {}): ExecResult => ({
  stdout: "out",
  stderr: "err",
  exit_code: 0,
  duration_ms: 12.5,
  cwd: "/work",
  truncated: false,
  ...more
})

/** Texts around the limits, also of characters that take two code units. */
const long = fc
  .tuple(fc.constantFrom("a", "é", "😀", "a😀", "\n"), fc.integer({ min: -70, max: 70 }), fc.constantFrom(1, 1, 3))
  .map(([unit, off, times]) => {
    const length = ShellRecord.longestOutput * times + off
    return `>${unit.repeat(Math.ceil(length / unit.length))}`.slice(0, length)
  })

const lone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

const shown = (fact: ShellRecord.ShellFact) =>
  fact.type === "session.next.shell.executed" ? fact.data : assert.fail("it is not an executed command")

it("SL-101: a recorded text has at most 100,000 characters, both its ends, and says what is missing", () => {
  fc.assert(
    fc.property(long, (text) => {
      const {
        command,
        lateOutput = "",
        stderr,
        stdout,
        truncated
      } = shown(ShellRecord.executed("1_local", text, result({ stdout: text, stderr: text, late_output: text })))
      assert.deepStrictEqual([stderr, command, lateOutput], [stdout, stdout, stdout])
      assert.isAtMost(stdout.length, ShellRecord.longestOutput)
      if (text.length <= ShellRecord.longestOutput) return assert.deepStrictEqual([stdout, truncated], [text, false])
      assert.isTrue(truncated)
      // A text of whole characters stays one.
      if (!lone.test(text)) assert.notMatch(stdout, lone)
      const [, head = "", missing, tail = ""] =
        /^(.*)\n\[(\d+) characters are not recorded\]\n(.*)$/s.exec(stdout) ?? []
      assert.isTrue(text.startsWith(head) && text.endsWith(tail) && head.length > 49_000 && tail.length > 49_000)
      assert.strictEqual(head.length + Number(missing) + tail.length, text.length)
    }),
    { numRuns: cases(40) }
  )
})

it("SL-101: a folder, a reason and a label have at most 4,096 characters", () => {
  const text = "x".repeat(5_000)
  const facts = [
    ShellRecord.opened("1_local", { transport: "local" }, text),
    ShellRecord.blocked("1_local", "a", new CommandBlocked({ policy: "shell", reason: text })),
    ShellRecord.checkpointed("1_local", "cp_1", text)
  ]
  const bounded = shown(ShellRecord.executed("1_local", "a", result({ cwd: text })))
  for (const { data } of [...facts, { data: bounded }]) {
    const longest = Math.max(...Object.values(data).map((value) => String(value).length))
    assert.isTrue(longest > 4_000 && longest <= ShellRecord.longestLine, String(longest))
  }
})

it("SL-102: the event of an opening has host, port and user, or the container, and no other option of the target", () => {
  const target = Schema.decodeUnknownSync(Target)
  const ssh = target({
    transport: "ssh",
    host: "build",
    user: "me",
    password: "hunter2!",
    keyPath: "/keys/id_secret",
    passphrase: "open-sesame"
  })
  assert.strictEqual(ssh.transport === "ssh" && ssh.password && Redacted.value(ssh.password), "hunter2!")
  assert.deepStrictEqual(ShellRecord.opened("1", ssh).data, { shellID: "1", transport: "ssh", title: "me@build:22" })
  const titles = [
    target({ transport: "docker", container: "web", user: "root" }),
    target({ transport: "ssh", host: "h", port: 2222, user: "u", agent: true }),
    target({ transport: "local" })
  ].map((each) => ShellRecord.opened("1", each).data)
  assert.deepStrictEqual(titles, [
    { shellID: "1", transport: "docker", title: "web" },
    { shellID: "1", transport: "ssh", title: "u@h:2222" },
    { shellID: "1", transport: "local" }
  ])
})

it("SL-100: every type of event has a fact, and each fact encodes as it is", () => {
  const facts = [
    ShellRecord.opened("1_local", { transport: "local" }, "/work"),
    ShellRecord.executed("1_local", "make", result({ timed_out: true, late_output: "late", output: "out_1" })),
    ShellRecord.blocked("1_local", "rm -rf /", new CommandBlocked({ policy: "operator", reason: "denied" })),
    ShellRecord.checkpointed("1_local", "cp_1", "before"),
    ShellRecord.restored("1_local", "cp_1", 3),
    ShellRecord.closed("1_local", "reaped")
  ]
  assert.deepStrictEqual(
    facts.map(({ type }) => type),
    shellDefinitions.map(({ type }) => type)
  )
  for (const fact of facts) assert.deepStrictEqual(Either.getOrThrow(Registry.encode(fact)).data, fact.data)
})
