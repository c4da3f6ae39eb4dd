/** Begins a session in a folder of the server's machine. Spec: IP-520 in specs/inspector.md. */
import { useState } from "preact/hooks"
import type { Session } from "@daybook/log/domain/Message"
import { go, hrefOf } from "../state/Route.ts"
import type { SessionList } from "../state/SessionList.ts"
import { useAction } from "./Action.ts"

export const NewSession = ({ list }: { readonly list: SessionList }) => {
  const { error, isBusy, run } = useAction()
  const [isOpen, setOpen] = useState(false)
  const [written, setWritten] = useState<string | undefined>(undefined)
  // The folder of the session that was used last.
  const directory = written ?? list.items.value[0]?.location.directory ?? ""
  if (!isOpen) {
    return (
      <button type="button" class="more" onClick={() => setOpen(true)}>
        New session
      </button>
    )
  }
  const begin = async () => {
    const made: { session?: Session | undefined } = {}
    if (!(await run(async () => (made.session = await list.create(directory))))) return
    setOpen(false)
    if (made.session !== undefined) go(hrefOf(made.session.id, "transcript"))
  }
  return (
    <form
      class="group"
      aria-label="New session"
      onSubmit={(event) => {
        event.preventDefault()
        void begin()
      }}
    >
      <label>
        Folder
        <input value={directory} onInput={({ currentTarget }) => setWritten(currentTarget.value)} />
      </label>
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy || directory.trim() === ""}>
          Begin
        </button>
        <button type="button" onClick={() => setOpen(false)}>
          Cancel
        </button>
      </div>
      {error === undefined ? undefined : <p class="problem">{error}</p>}
    </form>
  )
}
