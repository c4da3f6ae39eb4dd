/** A call that waits for permission: all of what it would do, and the decision. Spec: IP-9 in specs/inspector.md. */
import type { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import { useState } from "preact/hooks"
import type { OpenPermission } from "@daybook/api/group/WorkApi"
import { visible } from "../fold/Visible.ts"
import { durationText } from "../fold/Words.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { useAction } from "./Action.ts"
import { Code } from "./Markdown.tsx"
import { Badge, Raw, Text } from "./Parts.tsx"

const changeOf = (line: string): string => (line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same")

const Diff = ({ path, text }: { readonly path: string; readonly text: string }) => (
  <pre class="diff" tabIndex={0} role="region" aria-label={`Changes of ${path}`}>
    {text.split("\n").map((line, index) => (
      <span key={index} class={changeOf(line)}>{`${visible(line)}\n`}</span>
    ))}
  </pre>
)

const Subject = ({ subject }: { readonly subject: PermissionSubject }) => {
  switch (subject.type) {
    case "command":
      return (
        <>
          <Code language="bash" text={subject.command} />
          <p class="soft">
            in <Text>{subject.folder}</Text>
          </p>
          {subject.warnings.map((warning) => (
            <p key={warning} class="problem">
              <Text>{warning}</Text>
            </p>
          ))}
        </>
      )
    case "change":
      return (
        <>
          {subject.files.map(({ change, diff, movedTo, path }) => (
            <div key={path}>
              <p>
                <Badge>{change}</Badge> <Text>{movedTo === undefined ? path : `${path} \u2192 ${movedTo}`}</Text>
              </p>
              <Diff path={path} text={diff} />
            </div>
          ))}
        </>
      )
    default:
      // Every other subject is small: a path, a name, an input.
      return <Raw label="What the call would do" text={JSON.stringify(subject, undefined, 2)} />
  }
}

export const Permission = ({
  permission,
  session
}: {
  readonly permission: OpenPermission
  readonly session: OpenSession
}) => {
  const { error, isBusy, run } = useAction()
  const [message, setMessage] = useState("")
  const { always, ask, notes, resources, subject, timeLeftMs, title, tool } = permission
  // A command's title and resource repeat the command, which is shown whole.
  const isCommand = subject.type === "command"
  const decide = (decision: unknown) => () => void run(() => session.decide(ask, decision))
  return (
    <section class="question" aria-label={`Permission for ${tool}`}>
      <h3>
        <Badge tone="warn">{permission.permission}</Badge> <Text>{isCommand ? "Run this command?" : title}</Text>
      </h3>
      <Subject subject={subject} />
      {isCommand ? undefined : (
        <p class="soft">
          <Text>{resources.join(", ")}</Text>
        </p>
      )}
      {notes.map((note) => (
        <p key={note}>
          <Text>{note}</Text>
        </p>
      ))}
      {timeLeftMs === undefined ? undefined : (
        <p class="soft">Refused in {durationText(timeLeftMs)} without a decision.</p>
      )}
      <div class="decide">
        <div class="actions">
          <button type="button" class="main" disabled={isBusy} onClick={decide({ decision: "once" })}>
            Allow once
          </button>
          {always.length === 0 ? undefined : (
            <>
              <button
                type="button"
                disabled={isBusy}
                title={always.join(", ")}
                onClick={decide({ decision: "session" })}
              >
                Allow in this session
              </button>
              <button
                type="button"
                disabled={isBusy}
                title={always.join(", ")}
                onClick={decide({ decision: "always" })}
              >
                Always allow
              </button>
            </>
          )}
          <button type="button" disabled={isBusy} onClick={decide({ decision: "decline" })}>
            Decline
          </button>
        </div>
        <div class="actions">
          <input
            aria-label="What to do instead"
            placeholder="What to do instead"
            value={message}
            onInput={({ currentTarget }) => setMessage(currentTarget.value)}
          />
          <button
            type="button"
            disabled={isBusy || message.trim() === ""}
            onClick={decide({ decision: "correct", message })}
          >
            Correct
          </button>
        </div>
      </div>
      {error === undefined ? undefined : <p class="problem">{error}</p>}
    </section>
  )
}
