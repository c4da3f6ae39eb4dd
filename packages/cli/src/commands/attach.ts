/** `daybook attach`: shows a session that runs here, elsewhere or not at all on the screen. Spec: SC-535. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import type { Verb } from "../arguments/Verb.ts"

export const attach = {
  name: "attach",
  summary: "show a session on the screen, live, and steer it",
  words: "SESSION",
  details: [
    "SESSION is an id, the beginning of an id, or a title. The screen shows the end of the session and follows it, also " +
      "while another process runs it; a prompt joins its work. With --server URL before attach, the session is the server's.",
    "daybook without a command opens the same screen in this folder."
  ],
  flags: [Flags.trust],
  examples: [
    ["daybook attach fix", "follows the session called fix"],
    ["daybook --server http://127.0.0.1:4310 attach ses_01JD", "follows a session of a server"]
  ],
  command: Command.make(
    "attach",
    { session: Args.text({ name: "SESSION" }), trust: Flags.trust.options },
    ({ session, trust }) =>
      Effect.flatMap(
        Effect.promise(() => import("../screen/Open.ts")),
        ({ open }) => open({ session, goOn: false, model: undefined, agent: undefined, trust, plain: false })
      )
  )
} satisfies Verb
