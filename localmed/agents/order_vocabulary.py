"""Words of medical orders that names and endings alone do not tell: lists of our own, English and Chinese.

Facts, one word or phrase each, without meanings: they say what is a term, not what it is. Lists end where orders become
rare; a term that no list, ending, abbreviation, graph or library heading tells is not found.
"""

from __future__ import annotations

import re


def _phrases(text: str) -> frozenset[str]:
    """The phrases of ``text``, one between two commas or line ends."""
    return frozenset(" ".join(each.split()) for each in re.split(r"[,\n]", text) if each.strip())


# --- medicines: generic names without a telling stem, brands, classes -----------------------------------------------

MEDICINES = _phrases(
    """
    insulin, aspirin, acetaminophen, paracetamol, ibuprofen, naproxen, tramadol, codeine, hydrocodone, oxycodone
    morphine, fentanyl, methadone, hydromorphone, gabapentin, pregabalin, metformin, warfarin, heparin, digoxin
    furosemide, clonidine, hydralazine, nitroglycerin, isosorbide, amiodarone, levothyroxine, lithium, valproate
    phenytoin, carbamazepine, lamotrigine, levetiracetam, topiramate, bupropion, trazodone, mirtazapine, venlafaxine
    duloxetine, buspirone, haloperidol, risperidone, quetiapine, olanzapine, aripiprazole, amphetamine
    methylphenidate, salmeterol, fluticasone, albuterol, levalbuterol, ipratropium, tiotropium, montelukast
    cetirizine, loratadine, fexofenadine, diphenhydramine, hydroxyzine, promethazine, metoclopramide, ondansetron
    ranitidine, famotidine, cyclobenzaprine, methocarbamol, baclofen, allopurinol, colchicine, methotrexate
    hydroxychloroquine, prednisone, triamcinolone, hydrocortisone, dexamethasone, nystatin, permethrin, mupirocin
    clobetasol, tretinoin, isotretinoin, cephalexin, cefazolin, ceftriaxone, cefuroxime, vancomycin, gentamicin
    metronidazole, nitrofurantoin, doxycycline, trimethoprim, sulfamethoxazole, acyclovir, oseltamivir, tamoxifen
    letrozole, cisplatin, carboplatin, paclitaxel, docetaxel, cyclophosphamide, estrogen, estradiol, progesterone
    testosterone, oxytocin, magnesium, potassium chloride, calcium, iron, ferrous sulfate, folic acid, vitamin d
    vitamin b12, vitamin k, multivitamin, multivitamins, zinc, fish oil, glucosamine, chondroitin, melatonin, senna
    docusate, lactulose, polyethylene glycol, simethicone, lidocaine, bupivacaine, epinephrine, adrenaline, naloxone
    atropine, glucagon, dextrose, normal saline, saline, theophylline, guaifenesin, pseudoephedrine
    dextromethorphan, clopidogrel, spironolactone, temazepam, zolpidem, oxybutynin, tolterodine, finasteride
    tamsulosin, sildenafil, tadalafil, sumatriptan, butalbital, caffeine, erythropoietin, interferon, immunoglobulin
    mesalamine, sulfasalazine, azathioprine, cyclosporine, tacrolimus, botulinum toxin, chlorhexidine
    povidone-iodine, hydrogen peroxide, silver sulfadiazine, zoster vaccine, influenza vaccine, flu shot
    tetanus shot, tetanus toxoid, pneumovax, gardasil, tylenol, advil, motrin, aleve, excedrin, ultram, vicodin
    norco, lortab, percocet, oxycontin, roxicodone, dilaudid, duragesic, demerol, darvocet, celebrex, mobic
    voltaren, toradol, bextra, vioxx, relafen, lodine, neurontin, lyrica, flexeril, skelaxin, soma, robaxin
    zanaflex, lipitor, zocor, crestor, pravachol, zetia, vytorin, tricor, niaspan, lopressor, toprol, tenormin
    coreg, norvasc, cardizem, procardia, diovan, cozaar, hyzaar, benicar, avapro, avalide, micardis, altace, vasotec
    zestril, prinivil, lotensin, accupril, catapres, lasix, aldactone, demadex, dyazide, lanoxin, coumadin, plavix
    lovenox, xarelto, eliquis, glucophage, glucotrol, glucovance, micronase, amaryl, actos, avandia, januvia, byetta
    lantus, humalog, novolog, humulin, novolin, levemir, synthroid, levoxyl, armour thyroid, prilosec, nexium
    prevacid, protonix, aciphex, pepcid, zantac, reglan, zofran, phenergan, compazine, imodium, metamucil, miralax
    colace, dulcolax, tums, maalox, mylanta, pepto-bismol, prozac, zoloft, paxil, celexa, lexapro, effexor, cymbalta
    wellbutrin, remeron, desyrel, elavil, pamelor, xanax, ativan, valium, klonopin, ambien, lunesta, restoril
    seroquel, risperdal, zyprexa, abilify, geodon, invega, haldol, lithobid, depakote, lamictal, tegretol, dilantin
    keppra, topamax, trileptal, adderall, ritalin, concerta, strattera, vyvanse, aricept, namenda, sinemet, requip
    mirapex, advair, flovent, symbicort, pulmicort, serevent, spiriva, combivent, atrovent, proventil, ventolin
    xopenex, singulair, allegra, claritin, zyrtec, benadryl, flonase, nasonex, rhinocort, astelin, sudafed, mucinex
    robitussin, duraphen, tessalon, augmentin, amoxil, zithromax, biaxin, levaquin, cipro, avelox, bactrim, septra
    keflex, omnicef, ceftin, rocephin, minocin, vibramycin, flagyl, macrobid, diflucan, lamisil, valtrex, zovirax
    tamiflu, accutane, retin-a, bactroban, lotrisone, kenalog, elocon, neosporin, medrol, deltasone, decadron
    premarin, provera, estrace, fosamax, actonel, boniva, evista, detrol, ditropan, vesicare, flomax, proscar
    avodart, cialis, viagra, levitra, imitrex, maxalt, fioricet, zomig, botox, humira, enbrel, remicade, plaquenil
    trexall, zyloprim, depo-provera, mirena, ortho tri-cyclen, yaz, yasmin, nuvaring, chantix, suboxone, epipen
    xylocaine, marcaine, kaopectate, afrin, vasopressin, dopamine, dobutamine, levophed, versed, propofol, ketamine
    rituxan, herceptin, avastin, taxol, adriamycin, lupron, arimidex, femara, aranesp, epogen, procrit, neupogen
    neulasta, vistaril, buspar
    """
)
CLASSES = _phrases(
    """
    antibiotic, antibiotics, antibiotic ointment, diuretic, diuretics, beta blocker, beta blockers, beta-blocker
    beta-blockers, ace inhibitor, ace inhibitors, calcium channel blocker, steroid, steroids, corticosteroid
    corticosteroids, inhaled steroid, antihistamine, antihistamines, decongestant, decongestants, antacid, antacids
    laxative, laxatives, stool softener, stool softeners, anticoagulant, anticoagulants, anticoagulation
    blood thinner, blood thinners, antidepressant, antidepressants, antipsychotic, antipsychotics, anticonvulsant
    anticonvulsants, analgesic, analgesics, narcotic, narcotics, opioid, opioids, painkiller, painkillers
    pain medication, pain medications, muscle relaxant, muscle relaxants, sedative, sedatives, antiemetic
    antiemetics, antiviral, antifungal, antifungals, bronchodilator, bronchodilators, nebulizer, inhaler, inhalers
    oral contraceptive, oral contraceptives, birth control pills, hormone replacement, contraceptive, contraceptives
    vaccine, vaccines, antipyretic, antipyretics, anti-inflammatory, anti-inflammatories, antihypertensive
    antihypertensives, statins, vasodilator, vasopressor, vasopressors, expectorant, thyroid medication
    chemotherapy, electrolytes, supplements, herbal medications, alternative medicines, over the counter
    over-the-counter, proton pump inhibitor
    """
)
# After a name: "Fluticasone nasal inhaler", "Detrol LA". Taken into the term.
FORMS = _phrases(
    """
    tablet, tablets, capsule, capsules, ointment, cream, gel, lotion, inhaler, inhalers, spray, nasal spray, syrup
    nasal inhaler, suspension, drops, eye drops, ear drops, patch, patches, injection, injections, suppository
    elixir, solution, pump, drip, infusion, infusions, nebulizer, nebulizers, nebs, mouthwash, therapy, vaccine, la
    xr, sr, xl, er, cr, cd, dm, hcl, ds
    """
)

# --- conditions, findings, tests, treatments --------------------------------------------------------------------------

CONDITIONS = _phrases(
    """
    hypertension, high blood pressure, hypotension, diabetes, diabetes mellitus, diabetes type ii, type 2 diabetes
    type 1 diabetes, type ii diabetes, asthma, pneumonia, community acquired pneumonia, influenza, flu, stroke
    cancer, heart failure, congestive heart failure, heart attack, heart disease, coronary artery disease
    atrial fibrillation, arrhythmia, angina, high cholesterol, cholesterol, depression, anxiety, panic attacks
    bipolar disorder, schizophrenia, attention deficit hyperactivity disorder, attention deficit disorder, dementia
    seizure, seizures, migraine, migraines, headache, headaches, dizziness, vertigo, syncope, fever, fevers, chills
    nausea, vomiting, vomitting, emesis, diarrhea, diarrhoea, constipation, heartburn, acid reflux, reflux, ulcer
    ulcers, peptic ulcer, jaundice, hernia, gallstones, kidney stone, kidney stones, ureteral stone, renal failure
    kidney failure, dialysis, kidney disease, urinary tract infection, incontinence, urinary incontinence
    dehydration, anemia, anaemia, bleeding, hemorrhage, haemorrhage, bruising, blood clot, blood clots
    deep vein thrombosis, pulmonary embolism, embolism, infection, infections, sepsis, abscess, rash, eczema, acne
    hives, itching, swelling, edema, oedema, inflammation, allergy, allergies, allergic rhinitis, hypersensitivity
    anaphylaxis, shortness of breath, wheezing, cough, chest pain, sore throat, congestion, cold, hay fever
    sleep apnea, insomnia, fatigue, weakness, numbness, tingling, tremor, fracture, fractures, sprain, strain
    muscular strain, dislocation, laceration, lacerations, contusion, abrasion, concussion, head injury, impingement
    osteoporosis, gout, lupus, fibromyalgia, sciatica, scoliosis, back pain, neck pain, low back pain, joint pain
    abdominal pain, flank pain, pelvic pain, muscle pain, tumor, tumour, mass, lesion, lesions, nodule, nodules
    cyst, cysts, polyp, polyps, metastasis, metastases, malignancy, benign, melanoma, leukemia, hiv, hepatitis c
    hepatitis b, tuberculosis, shingles, herpes, fifth disease, chickenpox, measles, mumps, otitis media
    strep throat, cellulitis, obesity, hypothyroidism, hyperthyroidism, thyroid disease, menopause, pregnancy
    miscarriage, preeclampsia, gestational diabetes, glaucoma, cataract, cataracts, exacerbation, deconditioning
    instability, shock, coma, paralysis, blood-borne pathogen exposure, needlestick, overdose, poisoning
    alcohol abuse, substance abuse, withdrawal, suicidal ideation, hallucinations, delusions, autism
    respiratory distress, respiratory failure, hypoxia, cardiac arrest, murmur, chest discomfort, palpitations
    varicose veins, hemorrhoids, diverticulosis, crohn's disease, irritable bowel syndrome, ulcerative colitis
    pancreatitis, cirrhosis, ascites, obstruction, perforation, hematuria, dysuria, frequency, urgency
    kidney infection, bladder infection, prostate cancer, breast cancer, lung cancer, colon cancer, lymphoma
    stenosis, spinal stenosis, herniated disc, carpal tunnel syndrome, neuropathy, peripheral neuropathy
    parkinson's disease, alzheimer's disease, multiple sclerosis, cerebral palsy, failure to thrive
    developmental delay, croup, bronchiolitis, colic, diaper rash, viral syndrome, viral infection
    upper respiratory infection, bronchospasm, foreign body, burn, burns, bite, bites, cardiomyopathy
    hyperlipidemia, hypercholesterolemia, insufficiency, renal insufficiency, hypoglycemia, hyperglycemia
    hypokalemia, hyponatremia, hyperkalemia, drainage, redness, coffee-ground emesis, tinnitus, hearing loss
    blurred vision, wound, wounds, swallowing problems, loss of consciousness, weight loss, chest tightness
    night sweats, hot flashes, sinus infection
    """
)
TESTS = _phrases(
    """
    blood test, blood tests, blood work, blood count, complete blood count, blood culture, blood cultures, culture
    cultures, urinalysis, urine culture, x-ray, x-rays, chest x-ray, chest x-rays, ct scan, cat scan, mri scan
    ultrasound, sonogram, mammogram, bone scan, bone density, bone density scan, pap smear, biopsy, stress test
    echocardiogram, electrocardiogram, electroencephalogram, holter monitor, pulse oximetry, oximetry, spirometry
    pulmonary function test, pulmonary function tests, sleep study, angiogram, cardiac catheterization
    catheterization, hemoglobin, haemoglobin, hematocrit, creatinine, glucose, blood sugar, blood sugars
    electrolytes, potassium, sodium, liver function tests, thyroid function tests, cardiac enzymes, troponin
    lipid panel, lipid profile, lipids, triglycerides, platelets, white blood cell count, white count, vital signs
    blood pressure, heart rate, temperature, pathology, cytology, strep test, throat culture, stool culture, tb test
    ppd, pregnancy test, skin test, drug screen, arterial blood gas, lumbar puncture, spinal tap, eye exam
    physical examination, telemetry, cardiac monitor, scan, metabolic panel, basic metabolic panel
    comprehensive metabolic panel, coagulation studies, ferritin, d-dimer, lactate, amylase, lipase, bilirubin
    ammonia, cholesterol level, oxygen saturation, nerve conduction studies
    """
)
TREATMENTS = _phrases(
    """
    physical therapy, occupational therapy, speech therapy, psychotherapy, counseling, rehabilitation, rehab
    radiation, radiation therapy, radiotherapy, chemotherapy, surgery, transfusion, blood transfusion, home o2
    oxygen therapy, oxygen, home oxygen, iv fluids, intravenous fluids, fluids, hydration, nasal cannula, ventilator
    intubation, suction, catheter, foley catheter, foley, drain, stent, pacemaker, defibrillator, splint, brace
    crutches, wheelchair, sling, bandage, dressing, dressings, sutures, suture, stitches, staples, incision
    incision and drainage, debridement, anesthesia, general anesthesia, local anesthesia, sedation, immunization
    immunizations, vaccination, vaccinations, injection, injections, epidural, epidural injection, nerve block
    cortisone injection, joint replacement, hip replacement, knee replacement, transplant, hysterectomy
    cesarean section, c-section, circumcision, tubal ligation, amputation, bypass, angioplasty, cardioversion
    ablation, hospice, home health, bed rest, bedrest, compression, compression stockings, weight bearing
    weightbearing, range of motion, exercises, quad sets, low fat diet, low cholesterol diet, low sodium diet, diet
    low salt diet, diabetic diet, cardiac diet, regular diet, soft diet, clear liquids, clear liquid diet
    thin liquids, liquid diet, bland diet, ground meat, feeding tube, tube feeds, sliding scale, prophylaxis
    hearing aid, heating pad, tens unit, orthotics, cpap, bipap, nebulizer treatment, breathing treatment
    breathing treatments, isolation, intensive care, icu, palliative care, x-ray therapy, resuscitation, cpr, lavage
    port-a-cath, central line, picc line, iv line, chest tube, nasogastric tube, antibiotic therapy
    """
)

BODY = _phrases(
    """
    chest, abdomen, abdominal, belly, back, lower back, low back, neck, head, brain, hip, knee, ankle, foot, feet
    leg, shoulder, elbow, wrist, hand, spine, lumbar spine, cervical spine, thoracic spine, pelvis, pelvic, flank
    heart, lung, liver, kidney, renal, bladder, prostate, breast, thyroid, throat, sinus, sinuses, ear, eye, skin
    joint, bone, muscle, abdomen and pelvis, chest wall, rib, groin, heel, jaw, face, stomach, epigastric, bowel
    colon
    """
)
# What makes a term of a part of the body: "right hip pain", "CT of the abdomen".
FINDINGS = _phrases(
    "pain, pains, swelling, x-ray, x-rays, ultrasound, surgery, replacement, injury, infection, fracture, biopsy, "
    "mass, "
    "weakness, discomfort, tenderness, cancer, failure, disease, exam, transplant, spasm, spasms, stone, "
    "stones, ache, cramps, wound, laceration, effusion, symptoms, scan, mri, ct"
)
# Before a term: taken into it.
MODIFIERS = _phrases(
    "acute, chronic, severe, mild, moderate, recurrent, bilateral, left, right, upper, lower, recent, viral, "
    "bacterial, allergic, uncontrolled, generalized, total, partial, history of, metastatic, congestive, "
    "congenital, diabetic, essential, community acquired, community-acquired, postoperative, nasal, oral, topical, "
    "inhaled, intravenous, subcutaneous, intramuscular, low dose, low-dose, baby, urinary, pulmonary, cardiac, "
    "renal, cerebral, gastric, intestinal, laparoscopic, open, atypical, benign, malignant, idiopathic, rheumatoid, "
    "rheumatic, primary"
)

# --- endings that tell (Greek and Latin parts of medical words) -----------------------------------------------------

ENDINGS = re.compile(
    r"[a-z-]{2,30}(?:itis|itides|osis|oses|emia|aemia|uria|pathy|pathies|algia|ectomy|ostomy|otomy|oscopy|oscopic"
    r"|ography"
    r"|ographic|ogram|plasty|plegia|paresis|rrhea|rrhoea|rrhage|rrhagic|megaly|penia|philia|oma|omas|omata|sclerosis"
    r"|stenosis|trophy|dystrophy|spasm|phagia|phasia|pnea|pnoea|cardia|tension|emesis|lysis|centesis|desis|pexy|rrhaphy"
    r"|cele|ectasis|iasis|plasia|poiesis|ptosis|edema|oedema|thorax|therapy|scopy|metry|globin|cytes|cidal|static)"
)
NO_ENDINGS = _phrases(
    "diploma, aroma, system, dose, doses, purpose, prognosis, diagnosis, attention, tension, extension, "
    "intention, retention, basis, analysis, telegram, program, diagram, photography, geography, biography, ecstatic, "
    "static, hypnosis, symmetry, geometry, coma, soma, pretension, suspension, trophy, telemetry, "
    "empathy, sympathy, apathy, detention, coffee"
)
