/** What the readers of a session's events make of those of live shells: nothing. */
import { assert, it } from "@effect/vitest"
import { Option } from "effect"
import { repeated } from "../../../packages/core/src/session/Forking.ts"
import { Grouping } from "../../../packages/formats/src/export/Grouping.ts"
import { shellDefinitions } from "../../../packages/log/src/events/LiveShellEvents.ts"
import { documentOf } from "../../../packages/log/src/search/Document.ts"
import { isShellEvent } from "../../../packages/shell/src/record/ShellList.ts"
import * as Fold from "../../../packages/transcript/src/Fold.ts"
import { events } from "../../cli/support/samples.ts"

const ofShells = events.filter(isShellEvent)

it("SL-109: forks, search and session files leave the events of live shells out, and exports count them", () => {
  const grouping = new Grouping()
  for (const event of ofShells) {
    assert.isUndefined(repeated(event, { message: (id) => id, seq: (seq) => seq }))
    assert.isTrue(Option.isNone(documentOf(event)))
    const { blobs, events, messages } = Fold.evolve(Fold.initial, event)
    assert.deepStrictEqual([blobs, events, messages], [[], [], []])
    assert.deepStrictEqual(grouping.next(event), [])
  }
  assert.deepStrictEqual(
    [...grouping.dropped.keys()],
    shellDefinitions.map(({ type }) => type)
  )
})
