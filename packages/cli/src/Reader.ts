/** What a reader needs of the runtime. A file of its own, so that the bundle loads nothing else for it (CL-60). */
import { Store } from "@daybook/core"

export const layer = (filename: string) => Store.layer({ filename })
