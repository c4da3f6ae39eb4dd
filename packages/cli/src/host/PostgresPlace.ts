/** The place of a log in PostgreSQL. Nothing else imports the driver. */
import { Postgres } from "@daybook/postgres"
import type { Place } from "../config/DatabasePath.ts"

export const config = ({ schema, url }: Extract<Place, { readonly _tag: "Postgres" }>) =>
  Postgres.config({ url, schema })
