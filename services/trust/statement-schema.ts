// The statement's JSON Schema, for people and tools that write statements without our code. The committed
// schemas/plugin-statement.schema.json must equal what this makes; a test compares them.

import { z } from 'zod';
import { PREDICATE_TYPE, statementShape } from './statement.ts';

export function statementSchema(): object {
  const { $schema, ...shape } = z.toJSONSchema(statementShape, { target: 'draft-2020-12' });
  return {
    $schema,
    $id: PREDICATE_TYPE,
    title: 'Sandbus plugin statement',
    description:
      'An in-toto Statement v1 about one plugin file; the payload of a DSSE envelope of type application/vnd.in-toto+json. ' +
      'Beyond this schema: expires is later than notBefore, the file name begins with the name, and its extension means the runtime.',
    ...shape,
  };
}
