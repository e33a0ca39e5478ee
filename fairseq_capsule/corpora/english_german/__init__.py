"""A bilingual grammar: English, and German as regular as a grammar of this size can make it.

Every English sentence has exactly one German translation, and the way there is what makes German worth attending to:

- word order: verb-second main clauses with fronted adverbials, verb-final subordinate and relative clauses, participles
  and infinitives at the clause's end, separable prefixes (*she calls him* - *sie ruft ihn an*), when before what;
- agreement: gender, case and number on determiners and adjectives (weak, mixed and strong), relative pronouns, verbs;
- one word for two: compounds (*kitchen door* - *Küchentür*), diminutives, feminines; numbers (*dreiundzwanzig*);
- a productive vocabulary: agents, -ung, -heit and -keit, un-, -bar, -los, participles, degrees of comparison.

Read in this order: `lexemes` (what a word is), `lexicon/` (the words), `derivation` and `vocabulary` (what is made of
them), `syntax` (abstract sentences), `english` and `german` (a sentence in words), `phrases`, `clauses`, `sampler`
(which sentences are said), `corpus` (splits without a sentence in common).
"""
