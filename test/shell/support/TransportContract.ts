/**
 * What every transport promises of its programs, as tests of a transport. Scripts are for a POSIX `sh` with a few usual
 * programs: the container has busybox only.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, type Layer, Scope } from "effect"
import { createHash, randomBytes } from "node:crypto"
import type { Transport } from "../../../packages/shell/src/transport/Program.ts"
import { collect, runToEnd } from "./Programs.ts"

export class Tested extends Context.Tag("test/Transport")<Tested, Transport>() {}

export interface ContractOptions {
  /** The transport names the signal that ended a program; else the exit code is 128 + n. */
  readonly namesSignals: boolean
}

const megabyte = 1_000_000

/** Programs that end while something else is at work: a measure of time for what must not happen meanwhile. */
const meanwhile = (transport: Transport) => Effect.repeatN(runToEnd(transport, "true"), 4)

export const transportContract = <E>(
  name: string,
  layer: Layer.Layer<Tested, E>,
  { namesSignals }: ContractOptions
): void => {
  it.layer(layer, { timeout: 60_000 })(`a transport: ${name}`, (it) => {
    it.scoped("SL-80: the two streams of a program stay apart, and keep their bytes and order", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const apart = yield* runToEnd(transport, "for i in 1 2 3; do echo out$i; echo err$i >&2; done")
        assert.strictEqual(apart.stdout.toString(), "out1\nout2\nout3\n")
        assert.strictEqual(apart.stderr.toString(), "err1\nerr2\nerr3\n")
        const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
        const script = `printf '${[...all].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")}'`
        const { stderr, stdout } = yield* runToEnd(transport, `${script}; ${script} >&2`)
        assert.deepStrictEqual([stdout, stderr], [all, all])
      })
    )

    it.scoped("SL-80: what a program printed before anyone listened arrives, although it has ended", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const program = yield* transport.run("printf made; printf failed >&2")
        yield* program.exit
        yield* meanwhile(transport)
        const output = collect(program)
        yield* output.until("both texts", () => output.text("stdout") === "made" && output.text("stderr") === "failed")
      })
    )

    it.scoped("SL-81: a program ends with its exit code", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        for (const code of [0, 1, 2, 7, 126, 127, 255]) {
          const program = yield* transport.run(`exit ${code}`)
          assert.deepStrictEqual(yield* program.exit, { code, signal: null })
        }
      })
    )

    it.scoped("SL-81: a program that a signal ends ends with the signal", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        for (const [signal, number] of [
          ["TERM", 15],
          ["KILL", 9]
        ] as const) {
          const program = yield* transport.run(`kill -${signal} $$`)
          const expected = namesSignals ? { code: null, signal: `SIG${signal}` } : { code: 128 + number, signal: null }
          assert.deepStrictEqual(yield* program.exit, expected)
        }
      })
    )

    it.scoped("SL-81: a program's end does not wait for descendants that hold its streams", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const program = yield* transport.run("sleep 1000 & echo $!; exit 3")
        const output = collect(program)
        assert.deepStrictEqual(yield* program.exit, { code: 3, signal: null })
        yield* output.until("the process id", () => output.text("stdout").endsWith("\n"))
        const { exit } = yield* runToEnd(transport, `kill ${output.text("stdout")}`)
        assert.strictEqual(exit.code, 0)
      })
    )

    it.scoped("SL-81: a script that starts nothing ends with 127 and says why", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const { exit, stderr } = yield* runToEnd(transport, "exec /no/such/program")
        assert.strictEqual(exit.code, 127)
        assert.include(stderr.toString(), "/no/such/program")
        const refused = yield* Effect.flip(transport.run("echo \0"))
        assert.strictEqual(refused.reason, "no shell")
      })
    )

    it.scoped("SL-82: a program reads what is written, up to the end of the input", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const { stdout } = yield* runToEnd(transport, "cat; echo end", "one\ntwo\n")
        assert.strictEqual(stdout.toString(), "one\ntwo\nend\n")
      })
    )

    it.scoped("SL-82: a large input arrives whole", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const program = yield* transport.run("sha256sum")
        const output = collect(program)
        const hash = createHash("sha256")
        for (let n = 0; n < 30; n++) {
          const bytes = randomBytes(megabyte + n)
          hash.update(bytes)
          yield* program.write(bytes)
        }
        yield* program.endInput
        yield* output.until("the sum", () => output.text("stdout").endsWith("\n"))
        assert.strictEqual(output.text("stdout").split(" ")[0], hash.digest("hex"))
        assert.deepStrictEqual(yield* program.exit, { code: 0, signal: null })
      })
    )

    it.scoped("SL-82: a write waits for a program that does not read, and ends with the program", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const scope = yield* Scope.make()
        const program = yield* Scope.extend(transport.run("exec sleep 1000"), scope)
        const write = yield* Effect.fork(program.write(Buffer.alloc(64 * megabyte)))
        yield* meanwhile(transport)
        assert.isTrue((yield* Fiber.poll(write))._tag === "None")
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.join(write)
        yield* program.write("nobody reads this")
        yield* program.endInput
      })
    )

    it.scoped("SL-82: a paused program waits, in bounded memory, and loses nothing", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const program = yield* transport.run(`head -c ${200 * megabyte} /dev/zero; exec sleep 1000`)
        let [count, isPaused, broken] = [0, false, 0]
        const { until } = collect({
          ...program,
          listen: (listener) =>
            program.listen((stream, bytes) => {
              count += bytes.length
              if (isPaused) broken += 1
              if (count > 10 * megabyte && count - bytes.length <= 10 * megabyte) {
                isPaused = true
                program.pause()
              }
              listener(stream, new Uint8Array(0))
            })
        })
        const before = process.memoryUsage().arrayBuffers
        yield* until("the first 10 MB", () => isPaused)
        const atPause = count
        yield* meanwhile(transport)
        assert.deepStrictEqual([count, broken], [atPause, 0])
        assert.isBelow(process.memoryUsage().arrayBuffers - before, 50 * megabyte)
        isPaused = false
        program.resume()
        yield* until("200 MB", () => count >= 200 * megabyte)
        assert.strictEqual(count, 200 * megabyte)
      })
    )

    it.scoped("SL-83: the end of the scope ends the input and the listening, and `exit` completes", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const fifo = `/tmp/contract-${randomBytes(8).toString("hex")}`
        yield* runToEnd(transport, `mkfifo ${fifo}`)
        // The reader ends when the last program that can write to the fifo ends.
        const reader = yield* Effect.fork(runToEnd(transport, `cat ${fifo}; rm ${fifo}`))
        const scope = yield* Scope.make()
        const program = yield* Scope.extend(transport.run(`exec 3>${fifo}; echo open; cat; echo closed`), scope)
        const output = collect(program)
        yield* output.until("the first line", () => output.text("stdout") === "open\n")
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.join(reader)
        yield* program.exit
        assert.strictEqual(output.text("stdout"), "open\n")
      })
    )

    it.scoped("SL-83: programs of one transport run at the same time", () =>
      Effect.gen(function* () {
        const transport = yield* Tested
        const programs = yield* Effect.all(
          Array.from({ length: 8 }, (_, n) =>
            Effect.map(transport.run(`read line; echo ${n}-$line; exit ${n}`), (program) => ({
              n,
              program,
              output: collect(program)
            }))
          ),
          { concurrency: "unbounded" }
        )
        for (const { n, output, program } of programs.toReversed()) {
          yield* program.write(`line${n}\n`)
          yield* output.until("the answer", () => output.text("stdout") === `${n}-line${n}\n`)
          assert.strictEqual((yield* program.exit).code, n)
        }
      })
    )
  })
}
