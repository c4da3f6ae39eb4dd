/** `daybook attach`: shows a session that runs here, elsewhere or not at all on the screen. Spec: SC-535. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import { sessionWord } from "../host/Runtime.ts"
import * as TopLevel from "./TopLevel.ts"

export const attach = verb({
  name: "attach",
  summary: "show a session on the screen, live, and steer it",
  words: "SESSION",
  details: [
    "SESSION is an id, a title, or the beginning of either. The screen shows the end of the session and follows it, also " +
      "while another process runs it; a prompt joins its work. With --server URL before attach, the session is the server's.",
    "daybook without a command opens the same screen in this folder."
  ],
  examples: [
    ["daybook attach fix", "follows the session called fix"],
    ["daybook --server http://127.0.0.1:4310 attach ses_01JD", "follows a session of a server"]
  ],
  overServer: true,
  given: { session: sessionWord, trust: Flags.trust },
  run: ({ session, trust }) =>
    Effect.flatMap(
      Effect.promise(() => import("./Open.ts")),
      ({ open }) => open({ ...TopLevel.none, session, trust })
    )
})
