/** Opens a shell, leaves processes in it that hold the fifo open, then runs a last command until it is killed. */
import { dirname } from "node:path"
import { Console, Context, Effect, Layer } from "effect"
import * as Sandbox from "../../../packages/core/src/child/Sandbox.ts"
import * as LiveShell from "../../../packages/shell/src/session/LiveShell.ts"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"

const [fifo = "", kind = ""] = process.argv.slice(2)
const transport = Effect.gen(function* () {
  if (kind === "no sandbox") return LocalTransport.makeUnconfined()
  const sandbox = Context.get(yield* Layer.build(Sandbox.layer({ mode: "on" })), Sandbox.Sandbox)
  return yield* LocalTransport.make({ transport: "local" }, { sandbox, writable: [dirname(fifo)] })
})
const sink = () => undefined
const sinks = { stdout: sink, stderr: sink }

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const shell = yield* LiveShell.open(yield* transport, { cwd: "/tmp", late: sink })
      const hold = `sleep 600 >'${fifo}'`
      const jobs = `${hold} & setsid ${hold} & (trap '' INT TERM HUP; ${hold}) & env -i ${hold} & (env -i setsid ${hold} &)`
      yield* shell.run({ text: jobs }, sinks)
      const ready = Console.log("ready")
      yield* shell.run({ text: `echo; ${hold}` }, { ...sinks, stdout: () => Effect.runSync(ready) })
    })
  )
)
