/** Opens a shell, leaves processes in it that hold the fifo open, then runs a last command until it is killed. */
import { Console, Effect } from "effect"
import * as LiveShell from "../../../packages/shell/src/session/LiveShell.ts"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"

const [fifo = "", controlled = ""] = process.argv.slice(2)
const local = LocalTransport.make()
const transport = controlled === "yes" ? local : { ...local, controlled: false, runControlled: local.run }
const sink = () => undefined
const sinks = { stdout: sink, stderr: sink }

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const shell = yield* LiveShell.open(transport, { cwd: "/tmp", late: sink })
      const hold = `sleep 600 >'${fifo}'`
      yield* shell.run({ text: `${hold} & setsid ${hold} & (trap '' INT TERM HUP; ${hold}) & env -i ${hold} &` }, sinks)
      const ready = Console.log("ready")
      yield* shell.run({ text: `echo; ${hold}` }, { ...sinks, stdout: () => Effect.runSync(ready) })
    })
  )
)
